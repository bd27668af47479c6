//! The model that answers: the one that the environment names, or an echo.

use std::io;
use std::time::Duration;

use chat_memory::{ModelRequest, Reply, StreamedReply};
use tokio::sync::mpsc::UnboundedSender;

use crate::chat::Event;
use crate::openai::OpenAi;

pub enum Model {
    OpenAi(Box<OpenAi>),
    /// A stand-in that says the question back, and waits before each word.
    Echo(Duration),
}

impl Model {
    /// An OpenAI-compatible endpoint, where `OPENAI_MODEL` is set; where nothing of the kind is, an echo.
    pub fn from_env() -> Result<Self, Box<dyn std::error::Error>> {
        let setting = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let (url, key) = (setting("OPENAI_BASE_URL"), setting("OPENAI_API_KEY"));
        match setting("OPENAI_MODEL") {
            Some(model) => {
                let url = url.as_deref().unwrap_or("https://api.openai.com/v1");
                Ok(Self::OpenAi(Box::new(OpenAi::new(url, key, model)?)))
            }
            None if url.is_none() && key.is_none() => {
                let delay = setting("CHAT_ECHO_DELAY_MS").map_or(Ok(0), |text| text.parse())?;
                Ok(Self::Echo(Duration::from_millis(delay)))
            }
            None => Err("OPENAI_MODEL has to name the model".into()),
        }
    }

    /// Answers, and sends each piece as it comes.
    pub async fn answer(&self, request: ModelRequest, pieces: &UnboundedSender<Event>) -> io::Result<Reply> {
        // Where nobody listens any more, the answer is collected all the same.
        let say = |text: &str| _ = pieces.send(Event::Piece { text: text.to_owned() });
        match self {
            Self::OpenAi(model) => model.answer(request, say).await,
            Self::Echo(delay) => Ok(echo(request, *delay, say).await),
        }
    }
}

async fn echo(request: ModelRequest, delay: Duration, say: impl Fn(&str)) -> Reply {
    let question = request.messages.last().map(|message| message.text()).unwrap_or_default();
    let count = request.messages.len();
    let answer =
        format!("This is an echo, not a model. It was sent {count} messages, and the last one says: {question}");
    let mut reply = StreamedReply::new();
    for word in answer.split_inclusive(' ') {
        tokio::time::sleep(delay).await;
        reply.text(word);
        say(word);
    }
    reply.finish()
}
