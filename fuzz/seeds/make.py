#!/usr/bin/env python3
"""Writes the seeds again: those of `header`, `scan`, `record` and `file` from the golden files and from recipes (see
`fuzz/src/forge.rs`), those of `transcript` from the texts below."""

import json
import shutil
import struct
from pathlib import Path

HERE = Path(__file__).parent
GOLDEN = HERE.parent.parent / "tests" / "golden" / "v1"
FILES = {path.stem: path.read_bytes() for path in sorted(GOLDEN.glob("*.bin"))}
FRAME_MAGIC = b"\xf5CMf"


def seed(target, name, data):
    folder = HERE / target
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)


def frames(data):
    """The count and the payload of what looks like a frame."""
    at = data.find(FRAME_MAGIC)
    while at >= 0:
        length, count = struct.unpack_from("<I", data, at + 4)[0], struct.unpack_from("<I", data, at + 28)
        if at + 72 + length <= len(data):
            yield count[0], data[at + 72 : at + 72 + length]
        at = data.find(FRAME_MAGIC, at + 1)


def text(value):
    return bytes([len(value)]) + value.encode()


def messages(*said):
    """A payload of a recipe: up to four messages, each a role and a text."""
    return bytes([2 * (len(said) - 1) + 1]) + b"".join(bytes([role]) + text(value) for role, value in said)


def frame(*said, fields=0, values=b"", payload=None):
    return b"\x00" + struct.pack("<H", fields) + values + (payload or messages(*said))


TURN = [(2, "question"), (3, "answer")]
HEADER = b"\x00\x01\x00"
MIDDLE, BYTES, ZEROS, CUT, COPY = frame(*TURN, fields=1 << 10, values=b"\x80\x02"), b"\x04", b"\x05", b"\x06", b"\x07"
RECIPES = {
    "nothing": b"\x06",
    "header": HEADER,
    "turns": HEADER + frame((0, "You are terse.")) + frame(*TURN) * 3,
    "every-role": HEADER + frame((0, "s"), (1, "d"), (2, "u"), (3, "a")) + frame((4, "t")),
    "damaged-header": b"\x05\x01\x00\x20" + frame(*TURN) * 2,
    "no-header": b"\x06" + frame(*TURN) * 2,
    "newer-version": b"\x07\x02\x00\x01\x00" + frame(*TURN),
    "flag-to-know": b"\x00\xff\x80" + frame(*TURN),
    "middle": HEADER + frame(*TURN) + MIDDLE + frame(*TURN),
    "damaged-end": HEADER + frame(*TURN) + MIDDLE,
    "nothing-holds": HEADER + MIDDLE,
    "zeros": HEADER + frame(*TURN) + ZEROS + b"\x00\x04",
    "torn": HEADER + frame(*TURN) * 2 + CUT + b"\x09",
    "torn-by-zeros": HEADER + frame(*TURN) * 2 + CUT + b"\x10" + ZEROS + b"\x10\x00",
    "garbage": HEADER + frame(*TURN) + BYTES + b"\x20" + bytes(range(1, 33)),
    "copied": HEADER + frame(*TURN) * 2 + COPY + b"\x00" + frame(*TURN),
    "undecodable": HEADER + frame(*TURN) + frame(payload=b"\x00\x04\x00\x02\x00\x00\x09") + frame(*TURN),
    "undecodable-alone": HEADER + frame(fields=1 << 3, values=b"\x01", payload=b"\x00\x06\x00\x09\x00\x00\x00\x00\x00"),
    "skipped-kind": HEADER + frame(*TURN) + frame(fields=1 << 8, values=b"\xc8\x07", payload=b"\x00\x00\x00"),
    "skipped-kind-alone": HEADER + frame(fields=1 << 8, values=b"\xc8\x07", payload=b"\x00\x00\x00") + MIDDLE,
    "newer-kind": HEADER + frame(*TURN) + frame(fields=1 << 8, values=b"\x02\x01", payload=b"\x00\x00\x00"),
    "newer-codec": HEADER + frame(*TURN, fields=1 << 8, values=b"\x01\x02") + frame(*TURN),
    "wrong-ordinals": HEADER + frame(*TURN, fields=1 << 2, values=b"\x05") + frame(*TURN, fields=1 << 2, values=b"\x03"),
    "last-ordinal": HEADER + frame(*TURN, fields=1 << 2, values=b"\x50"),
    "last-number": HEADER + frame(*TURN, fields=1 << 4, values=b"\x40") + frame(*TURN),
    "wrong-pointers": HEADER + frame(*TURN) + frame((3, "a"), fields=0b11 << 6, values=b"\x60\x61") + frame((3, "b")),
    "claimed-length": HEADER + frame(*TURN, fields=1 << 11, values=b"\xff\xff\xff\xff") + frame(*TURN),
    "other-epoch": HEADER + frame(*TURN) + frame(*TURN, fields=1, values=b"\x07"),
}

# A message of each kind that the importers know, as a list, an object or lines.
OPENAI = {
    "plain": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}],
    "object": {"messages": [{"role": "developer", "content": "d", "name": "n"}], "model": "m"},
    "calls": [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}", "strict": True}, "index": 0},
            {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "i", "more": []}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "r", "is_error": True},
        {"role": "tool", "tool_call_id": "c2", "name": "g", "content": [{"type": "text", "text": "r"}]},
    ],
    "functions": [{"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
                  {"role": "function", "name": "f", "content": "r"}],
    "parts": [{"role": "user", "content": [
        "x", {"type": "text", "text": "t", "cache": {"ttl": 1.5}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_id": "file-1"}}, {"type": "else", "else": {"a": [1, 2.5, None, -3]}}]}],
    "refusal": [{"role": "assistant", "content": None, "refusal": "no", "audio": {"id": "a1"}, "annotations": []}],
    "numbers": [{"role": "user", "content": "u", "n": [18446744073709551615, -9223372036854775808, 1e300, 0.1, -0.0]}],
    "a-key-like-no-other": [{"role": "user", "content": "u", "x": {"$serde_json::private::RawValue": "[1]"}}],
    "not-of-the-form": [{"role": "nobody", "content": 1}],
}
ANTHROPIC = {
    "request": {"system": "s", "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "c2", "name": "f", "input": {"INVALID_JSON": "{"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": [{"type": "text", "text": "r"}]},
            {"type": "tool_result", "tool_use_id": "c2"}, {"type": "text", "text": "u"}]}]},
    "response": [{"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "else"}], "stop_reason": None}],
}
RESPONSES = {
    "request": {"instructions": "s", "input": "u"},
    "response": {"output": [{"type": "message", "id": "m1", "role": "assistant", "content": []}]},
    "items": [
        {"role": "user", "content": [
            {"type": "input_text", "text": "t", "more": 1}, {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="},
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"},
            {"type": "input_file", "file_url": "https://example.org/a.pdf"}]},
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "t"}], "encrypted_content": "e"},
        {"type": "message", "id": "m1", "role": "assistant", "content": [
            {"type": "output_text", "text": "a", "annotations": []}, {"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": "b"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "i"}, {"type": "else", "id": "e1"},
        {"type": "function_call_output", "call_id": "c1", "output": "r"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "r"}]}],
}
OWN = {
    "text": [{"role": "user", "id": "m", "name": "n", "created_at": "-1.500000000", "content": [{"type": "text", "text": "t"}]}],
    "media": [{"role": "user", "content": [{"type": "media", "mime_type": "image/png", "base64": "iVBORw=="},
                                            {"type": "media", "url": "https://example.org"}]}],
    "calls": [{"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "f", "arguments": "{"}]},
              {"role": "tool", "content": [{"type": "tool_result", "call_id": "c", "name": "f", "is_error": True,
                                            "parts": [{"type": "text", "text": "r"}]}]}],
    "reasoning": [{"role": "assistant", "content": [{"type": "reasoning", "text": "t", "signature": "s", "redacted": "r"}]}],
    "opaque": [{"role": "assistant", "content": [{"type": "opaque", "provider": "openai", "json": "{\"type\":\"x\"}"}]}],
    "metadata": [{"role": "user", "content": [], "metadata": {"a": None, "b": [True, {"c": 1e-7}], "d": "e", "f": -1}}],
    "a-key-like-no-other": [{"role": "user", "content": [], "metadata": {"a": {"$serde_json::private::RawValue": "no"}}}],
}


def main():
    for target in ["header", "scan", "record", "file", "transcript"]:
        shutil.rmtree(HERE / target, ignore_errors=True)
    for name, data in FILES.items():
        seed("header", name, b"\x04" + data[:128])
        seed("scan", name, bytes([0, 60 + len(name), 4]) + data)
        seed("scan", f"mended-{name}", bytes([1, 60 + len(name), 1]) + data)
        seed("file", name, b"\x00" + data)
        seed("file", f"mended-{name}", b"\x01" + data)
    for mode in range(4):
        seed("header", f"mended-{mode}", bytes([mode]) + FILES["user-42"][:67])
    seed("header", "newer", b"\x05" + FILES["user-42"][:8] + b"\x02" + FILES["user-42"][9:67])
    for name in ["whole", "every-kind"]:
        for number, (count, payload) in enumerate(frames(FILES[name])):
            seed("record", f"{name}-{number}", struct.pack("<I", count) + payload)
    rows = {
        "shortest": (4, bytes([4, 0, 0, 0, 0, 0]) * 4),
        "many-parts": (1, bytes([2, 0, 0, 0, 100, 0]) + b"\x00\x00" * 100),
        "undecodable-at-the-end": (1, bytes([2, 0, 0, 0, 3, 0]) + b"\x00\x00" * 2 + b"\x00\x01\xff"),
        "call-in-a-result": (1, bytes([4, 0, 0, 0, 1, 0, 4, 0, 0, 0, 1, 3, 0, 0, 0])),
        "times": (1, bytes([2, 0, 0, 1, 1, 253]) + b"\xff" * 7 + b"\x7f" + b"\x00\x00\x00"),
        "json": (1, bytes([2, 0, 0, 0, 0, 3]) + text("a") + b"\x06" + text('{"$serde_json::private::RawValue":"[1]"}')
                 + text("b") + b"\x06" + text("[1e999]") + text("a") + b"\x06" + text(' [[],{"a":1,"a":-0.0}] ')),
        "floats": (1, bytes([2, 0, 0, 0, 0, 2]) + text("") + b"\x04" + struct.pack("<d", -0.0) + text("") + b"\x04"
                   + struct.pack("<d", float("nan"))),
        "wide-integers": (1, bytes([2, 0, 0, 0, 251, 1, 0, 0, 0, 252, 1, 0, 0, 0, 0x78])),
        "count": (0xffffffff, bytes(12)),
    }
    for name, (count, payload) in rows.items():
        seed("record", name, struct.pack("<I", count) + payload)
    for name, recipe in RECIPES.items():
        seed("scan", f"recipe-{name}", b"\x02\x3d\x10" + recipe)
        seed("file", f"recipe-{name}", b"\x02" + recipe)
    for form, transcripts in [("openai", OPENAI), ("anthropic", ANTHROPIC), ("responses", RESPONSES), ("own", OWN)]:
        for name, transcript in transcripts.items():
            seed("transcript", f"{form}-{name}.json", json.dumps(transcript).encode())
            if isinstance(transcript, list):
                lines = "".join(json.dumps(message) + "\n" for message in transcript)
                seed("transcript", f"{form}-{name}.jsonl", lines.encode())
    seed("transcript", "surrogates.json", b'[{"role":"user","content":"\\ud83d \\ud83d\\ude00"}]')
    seed("transcript", "byte-order-mark.json", b'\xef\xbb\xbf[{"role":"user","content":"u"}]')
    seed("transcript", "deep.json", b'{"role":"user","content":"u","x":' + b"[" * 120 + b"]" * 120 + b"}")


main()
