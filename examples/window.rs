//! What a model is shown of a conversation, as windows of different sizes see it.
//!
//! `cargo run --example window`

use chat_memory::{ChatMemory, InMemoryChatMemory, Message, OpenCalls, TokenEstimate, Window, model_ready};

fn main() -> chat_memory::Result<()> {
    let conversation = [
        Message::system("You are a travel agent."),
        Message::user("Find me a flight to Oslo."),
        Message::assistant("").with_tool_call("c1", "flights", r#"{"to":"OSL"}"#),
        Message::tool_result("c1", "flights", "SK 1462, 9:10"),
        Message::assistant("There is one at 9:10."),
        Message::user("And a hotel, and the weather?"),
        Message::assistant("").with_tool_call("c2", "hotels", "{}").with_tool_call("c3", "weather", "{}"),
        Message::tool_result("c2", "hotels", "Grand, 1,900 kr"),
    ];
    for (name, window) in [
        ("8 messages", Window::messages(8)),
        ("5 messages", Window::messages(5)),
        ("1 message: the question and the newest round are always shown", Window::messages(1)),
        ("60 tokens, estimated", Window::tokens(60, TokenEstimate)),
    ] {
        println!("{name}");
        show(&window.view(&conversation));
    }

    // The weather tool never answered. What is sent says so; what is stored stays as it is.
    let memory = InMemoryChatMemory::builder().max_messages(5).build()?;
    memory.add("trip-1", &conversation)?;
    let mut messages = memory.get("trip-1")?;
    messages.push(Message::user("Never mind the weather. Book it."));
    println!("made ready for the model");
    show(&model_ready(&messages, OpenCalls::Interrupt));
    Ok(())
}

fn show(messages: &[Message]) {
    for message in messages {
        let calls: Vec<&str> = message.tool_calls().map(|call| call.name.as_str()).collect();
        let said = if calls.is_empty() { message.text().into_owned() } else { format!("calls {}", calls.join(", ")) };
        println!("  {:>9}: {said}", message.role());
    }
}
