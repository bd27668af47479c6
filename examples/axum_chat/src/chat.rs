//! Turns: one at a time in a conversation, to the end, remembered.

use std::sync::Arc;

use chat_memory::{
    AsyncMemoryAdvisor, FileChatMemory, INTERRUPTED, Message, ModelRequest, Offload, Outcome, Result, TurnError,
};
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::task::TaskTracker;

use crate::locks::Locks;
use crate::model::Model;

/// What a client hears of a turn: pieces, and then one of the others.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// A piece of the answer.
    Piece { text: String },
    /// The whole answer. Question and answer are on disk.
    Remembered { text: String, interrupted: bool },
    /// What went wrong.
    Error { error: String },
}

/// The conversations, and the model that takes part in them.
pub struct Chat {
    advisor: AsyncMemoryAdvisor<Offload<FileChatMemory>>,
    model: Model,
    locks: Locks,
    turns: TaskTracker,
}

impl Chat {
    pub fn new(memory: Offload<FileChatMemory>, model: Model) -> Self {
        Self { advisor: AsyncMemoryAdvisor::new(memory), model, locks: Locks::default(), turns: TaskTracker::new() }
    }

    /// Begins a turn, and says what happens in it.
    ///
    /// It runs in a task of its own: it goes on when the client is gone, and what the model said, and was paid for, is
    /// remembered. The client finds it in the history, or sends the message with its id once more. For the same reason the
    /// channel has no bound but the answer's length: a client that reads slowly does not hold up the turn.
    pub fn turn(self: &Arc<Self>, conversation: String, question: Message) -> UnboundedReceiver<Event> {
        let (events, heard) = unbounded_channel();
        let chat = Arc::clone(self);
        self.turns.spawn(async move {
            // The store keeps two turns at once apart, but each would have been asked without the other's answer. And a retry
            // that waits for the first try finds its answer.
            let _turn = chat.locks.lock(&conversation).await;
            let (model, pieces) = (&chat.model, &events);
            let ask = move |request: ModelRequest| model.answer(request, pieces);
            let outcome = chat.advisor.turn(&conversation, [question], &ask).await;
            let last = match outcome {
                Ok(outcome) => ended(outcome, |piece| _ = events.send(piece)),
                Err(error) => failed(&error),
            };
            _ = events.send(last);
        });
        heard
    }

    /// Forgets a conversation, when its running turn has ended: else that would write it anew.
    pub async fn forget(&self, conversation: &str) -> Result<()> {
        let _turn = self.locks.lock(conversation).await;
        self.advisor.clear(conversation).await
    }

    pub fn memory(&self) -> &Offload<FileChatMemory> {
        self.advisor.memory()
    }

    pub fn turns_under_way(&self) -> usize {
        self.turns.len()
    }

    /// Waits until no turn is under way.
    pub async fn all_turns(&self) {
        self.turns.close();
        self.turns.wait().await;
    }
}

/// The last event of a turn that ended well; `say` is given what was not said yet.
fn ended(outcome: Outcome, say: impl FnOnce(Event)) -> Event {
    let Outcome { messages, answer, is_interrupted, .. } = outcome;
    let Some(answer) = answer else {
        return match is_interrupted {
            true => Event::Error { error: "the model broke off before it said anything".to_owned() },
            false => Event::Remembered { text: String::new(), interrupted: false },
        };
    };
    let text = answer.text().into_owned();
    if messages.is_empty() {
        // A retry: this was remembered before, and the model was not asked.
        say(Event::Piece { text: text.clone() });
    }
    let interrupted = is_interrupted || answer.metadata().get(INTERRUPTED).is_some();
    Event::Remembered { text, interrupted }
}

fn failed(error: &TurnError<std::io::Error>) -> Event {
    tracing::error!(error = error as &dyn std::error::Error, "a turn failed");
    Event::Error { error: error.to_string() }
}
