#!/usr/bin/env python3
"""An independent reader of chat-memory's files, written from docs/format.md alone.

    python3 format_reader.py [--id ID] FILE...

prints one JSON object per file and line: what state the file is in, where it is damaged, and the messages of the frames
that hold. It changes nothing and takes no lock. `--id` is the conversation id of the files; it is only needed to tell
exactly whether a file is a header cut short (without it, the file's name has to do).
"""

import argparse
import codecs
import hashlib
import json
import math
import os
import re
import struct
import sys
from typing import NamedTuple

FILE_MAGIC = b"\x89CHATMEM"
VERSION = 1
REFUSED_FLAGS = 0xFF00  # bits 8 to 15; none is known yet
FILE_HEADER = struct.Struct("<8sHHIQ32s")  # magic, version, flags, length, epoch, sha256; then id and crc
CRC_SIZE = 4

FRAME_MAGIC = b"\xf5CMf"
END_MARK = b"\xf6CMe"
FRAME_HEADER = struct.Struct("<4sIQQIIQQQQBBHI")
FRAME_TRAILER = struct.Struct("<I I 4s")  # crc, payload length, end mark
FRAME_OVERHEAD = FRAME_HEADER.size + FRAME_TRAILER.size
MESSAGES_KIND = 1
FIRST_SKIPPABLE_KIND = 128
RECORDS_CODEC = 1
SECTOR = 512

ROLES = ("system", "developer", "user", "assistant", "tool")
NESTED_PARTS = (0, 1, 2, 6)  # the kinds of part that a tool result may hold


# Checksums


def crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


CRC_TABLE = crc_table()


def crc32c(data):
    table, crc = CRC_TABLE, 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def masked_crc(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


# The file header


class Header(NamedTuple):
    version: int
    flags: int
    end: int
    epoch: int
    sha256: bytes
    id: bytes


def read_header(data):
    """The file header, of any version, if it holds."""
    if len(data) < FILE_HEADER.size + CRC_SIZE:
        return None
    magic, version, flags, length, epoch, sha256 = FILE_HEADER.unpack_from(data)
    if magic != FILE_MAGIC or not FILE_HEADER.size + CRC_SIZE <= length <= len(data):
        return None
    crc_at = length - CRC_SIZE
    if masked_crc(data[:crc_at]) != int.from_bytes(data[crc_at:length], "little"):
        return None
    return Header(version, flags, length, epoch, sha256, data[FILE_HEADER.size:crc_at])


def is_header_prefix(data, expected_sha256, conversation_id):
    """Whether the file is a proper prefix, perhaps of no bytes, of a valid header for its conversation."""
    start = FILE_MAGIC + VERSION.to_bytes(2, "little")
    if data[:10] != start[:len(data)] or data[11:12] not in (b"", b"\0"):
        return False
    if data[24:56] != (expected_sha256 or b"")[:len(data[24:56])]:
        return False
    given = None if conversation_id is None else conversation_id.encode()
    if given is not None and not length_bytes(len(given)).startswith(data[12:16]):
        return False
    if len(data) < 16:
        return True
    length = int.from_bytes(data[12:16], "little")
    crc_at = length - CRC_SIZE
    if crc_at < FILE_HEADER.size or len(data) >= length:
        return False
    id_bytes = data[FILE_HEADER.size:crc_at]
    if not is_utf8_prefix(id_bytes) or not (given is None or given.startswith(id_bytes)):
        return False
    if len(data) < crc_at:
        return True
    crc = masked_crc(data[:crc_at]).to_bytes(CRC_SIZE, "little")
    return hashlib.sha256(id_bytes).digest() == expected_sha256 and crc.startswith(data[crc_at:])


def is_utf8_prefix(data):
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return True


def length_bytes(id_size):
    return (FILE_HEADER.size + id_size + CRC_SIZE).to_bytes(4, "little")


# Frames


class Frame(NamedTuple):
    start: int
    payload_size: int
    epoch: int
    count: int
    first_sequence: int
    recorded_at: int
    kind: int
    codec: int
    crc: int

    @property
    def payload_start(self):
        return self.start + FRAME_HEADER.size

    @property
    def payload_end(self):
        return self.payload_start + self.payload_size

    @property
    def end(self):
        return self.start + FRAME_OVERHEAD + self.payload_size


def read_frame_header(data, at, epoch):
    """The frame whose header holds at that place; of any epoch if `epoch` is None."""
    if len(data) - at < FRAME_HEADER.size:
        return None
    (magic, payload_size, frame_epoch, offset, _ordinal, count, first_sequence, recorded_at, _newest_system, _newest_user,
     kind, codec, _flags, crc) = FRAME_HEADER.unpack_from(data, at)
    if magic != FRAME_MAGIC or offset != at or at == 0 or epoch not in (None, frame_epoch):
        return None
    if masked_crc(data[at:at + FRAME_HEADER.size - CRC_SIZE]) != crc:
        return None
    return Frame(at, payload_size, frame_epoch, count, first_sequence, recorded_at, kind, codec, crc)


def trailer_holds(data, frame):
    if frame.end > len(data):
        return False
    crc, payload_size, mark = FRAME_TRAILER.unpack_from(data, frame.payload_end)
    if payload_size != frame.payload_size or mark != END_MARK:  # cheap, so before the payload's crc
        return False
    return crc == masked_crc(struct.pack("<II", frame.crc, crc32c(data[frame.payload_start:frame.payload_end])))


def find_frames(data, start, epoch, known):
    """The frames that hold, in the order of the file. `known` keeps what was found out about trailers."""
    frames = []
    at = data.find(FRAME_MAGIC, start)
    while at >= 0:
        frame = read_frame_header(data, at, epoch)
        if frame is not None and at not in known:
            known[at] = trailer_holds(data, frame)
        if frame is not None and known[at]:
            frames.append(frame)
            at = data.find(FRAME_MAGIC, frame.end)
        else:
            at = data.find(FRAME_MAGIC, at + 1)
    return frames


def gaps(frames, start):
    """The stretches before and between the frames that no frame holds."""
    found = []
    for frame in frames:
        if frame.start > start:
            found.append([start, frame.start])
        start = frame.end
    return found


def tail_state(data, end, epoch):
    used = len(data.rstrip(b"\0"))
    if used <= end:
        return "clean"
    frame = None if epoch is None else read_frame_header(data, end, epoch)
    extent_end = frame.end if frame else max(end + FRAME_OVERHEAD, used)
    if extent_end > len(data) or data[extent_end - 1] == 0:
        return "torn"
    for sector in range(end - end % SECTOR, extent_end, SECTOR):
        if not any(data[max(sector, end):min(sector + SECTOR, extent_end)]):
            return "torn"
    return "damaged"


# Payloads of codec 1


class Undecodable(Exception):
    pass


class Records:
    """Reads bincode rows, one value after the other."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, size):
        end = self.at + size
        if end > len(self.data):
            raise Undecodable("cut short")
        taken = self.data[self.at:end]
        self.at = end
        return taken

    def unsigned(self, bits=64):
        value = self.take(1)[0]
        if value > 250:
            if value > 253:
                raise Undecodable("integer")
            value = int.from_bytes(self.take(2 << (value - 251)), "little")
        if value >> bits:
            raise Undecodable("integer too large")
        return value

    def signed(self):
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def choice(self, allowed):
        number = self.unsigned(32)
        if number not in allowed:
            raise Undecodable("choice")
        return number

    def boolean(self):
        value = self.take(1)[0]
        if value > 1:
            raise Undecodable("bool")
        return value == 1

    def float(self):
        value = struct.unpack("<d", self.take(8))[0]
        if not math.isfinite(value):
            raise Undecodable("float")
        return value

    def bytes(self):
        return self.take(self.unsigned())

    def text(self):
        try:
            return self.bytes().decode()
        except UnicodeDecodeError as error:
            raise Undecodable("text") from error

    def optional(self, read):
        return read() if self.boolean() else None

    def many(self, read, count):
        return [read() for _ in range(count)]  # ends early when the bytes do: each takes at least one

    def time(self):
        time = [self.boolean(), self.unsigned(), self.unsigned(32)]
        if time[2] >= 1_000_000_000:
            raise Undecodable("time")
        return time

    def part(self, allowed=range(7)):
        kind = self.choice(allowed)
        if kind == 0:
            return {"text": self.text()}
        if kind in (1, 2):
            mime_type = self.optional(self.text)
            media = {"media_url": self.text()} if kind == 1 else {"media_bytes": self.bytes().hex()}
            return {**media, "mime_type": mime_type}
        if kind == 3:
            return {"tool_call": [self.text(), self.text(), self.text()]}
        if kind == 4:
            part = {"tool_result": self.text(), "name": self.optional(self.text), "is_error": self.boolean()}
            part["parts"] = self.many(lambda: self.part(NESTED_PARTS), self.unsigned(32))
            return part
        if kind == 5:
            return {"reasoning": self.text(), "signature": self.optional(self.text), "redacted": self.optional(self.text)}
        return {"opaque": self.text(), "json": self.text()}

    def metadata_entry(self):
        key = self.text()
        kind = self.choice(range(7))
        if kind == 6:
            text = self.text()
            try:
                json.loads(text)
            except ValueError as error:
                raise Undecodable("JSON text") from error
            return [key, {"json": text}]
        return [key, (lambda: None, self.boolean, self.unsigned, self.signed, self.float, self.text)[kind]()]

    def message(self, sequence, recorded_at):
        message = {"seq": sequence, "recorded_at": recorded_at, "role": ROLES[self.choice(range(len(ROLES)))]}
        message["id"] = self.optional(self.text)
        message["name"] = self.optional(self.text)
        message["created_at"] = self.optional(self.time)
        parts, entries = self.unsigned(32), self.unsigned(32)
        message["content"] = self.many(self.part, parts)
        message["metadata"] = self.many(self.metadata_entry, entries)
        return message


def read_messages(data, frame):
    """The messages of a frame; none if it is of a kind to skip."""
    if frame.kind != MESSAGES_KIND:
        return []
    records = Records(data[frame.payload_start:frame.payload_end])
    messages = []
    for number in range(frame.count):
        messages.append(records.message(frame.first_sequence + number, frame.recorded_at))
    if records.at != len(records.data):
        raise Undecodable("bytes left over")
    return messages


# Files


def needs_newer_reader(frame):
    if frame.kind >= FIRST_SKIPPABLE_KIND:
        return False
    return frame.kind != MESSAGES_KIND or frame.codec != RECORDS_CODEC


def sha256_of_name(name):
    return bytes.fromhex(name[:64]) if re.fullmatch(r"[0-9a-f]{64}\.bin", name) else None


def decode_id(header):
    try:
        return header.id.decode()
    except UnicodeDecodeError:
        return None


def blank_report(name):
    return {"file": name, "state": "damaged", "id": None, "header": "damaged", "end": 0, "tail": "clean", "corrupt": [],
            "messages": []}


def read_file(name, data, conversation_id=None):
    report = blank_report(name)
    expected = sha256_of_name(name)
    header = read_header(data)
    known = {}
    if header:
        report.update(header="holds", end=header.end)
        if header.version != VERSION or header.flags & REFUSED_FLAGS:
            report["state"] = "unsupported"  # nothing behind the header is known to be where version 1 has it
            return report
        report["id"] = decode_id(header)
        epoch = header.epoch
    else:
        epoch = int.from_bytes(data[16:24], "little") if len(data) >= 24 else None
        if epoch is None or not find_frames(data, 0, epoch, known):
            of_any_epoch = find_frames(data, 0, None, known)
            epoch = of_any_epoch[-1].epoch if of_any_epoch else None

    frames_start = report["end"]
    frames = [] if epoch is None else find_frames(data, frames_start, epoch, known)
    if frames:
        report["end"] = frames[-1].end
    report["corrupt"] = gaps(frames, frames_start)
    report["tail"] = tail_state(data, report["end"], epoch)

    if header and (report["id"] is None or header.sha256 != expected or hashlib.sha256(header.id).digest() != expected):
        report["state"] = "other"
    elif any(map(needs_newer_reader, frames)):
        report["state"] = "unsupported"
    elif frames:
        report["state"] = "conversation"
        add_messages(report, data, frames)
    elif header:
        report["state"] = "damaged" if report["tail"] == "damaged" else "empty"
    elif is_header_prefix(data, expected, conversation_id):
        report.update(state="empty", header="missing", tail="torn" if data else "clean")
    return report


def add_messages(report, data, frames):
    for frame in frames:
        try:
            report["messages"] += read_messages(data, frame)
        except Undecodable:
            report["corrupt"].append([frame.start, frame.end])
    report["corrupt"].sort()


def main():
    parser = argparse.ArgumentParser(description="Read files of chat-memory; print one JSON object for each.")
    parser.add_argument("--id", help="the conversation id of the files")
    parser.add_argument("files", nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    for path in arguments.files:
        name = os.path.basename(path)
        try:
            with open(path, "rb") as file:
                report = read_file(name, file.read(), arguments.id)
        except Exception as error:  # no file may stop the others from being read
            print(f"{path}: {error!r}", file=sys.stderr)
            report = blank_report(name)
        line = json.dumps(report, ensure_ascii=False, sort_keys=False, separators=(",", ":"))
        sys.stdout.buffer.write(line.encode() + b"\n")


if __name__ == "__main__":
    main()
