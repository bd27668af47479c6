//! Whom `chat` talks to.

mod echo;
mod openai;

use std::env;

use chat_memory::{Model, ModelRequest, Reply};

pub use self::openai::OpenAi;

use crate::failure::Failure;

/// Where pieces of an answer go as they come.
pub type Show<'a> = &'a dyn Fn(&str);

/// A model that shows its answer while it comes.
pub enum Endpoint {
    OpenAi(OpenAi),
    Echo,
}

impl Endpoint {
    /// What the environment names; an echo where it names nothing.
    pub fn from_env() -> Result<Self, Failure> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let (base, key) = (variable("OPENAI_BASE_URL"), variable("OPENAI_API_KEY"));
        if base.is_none() && key.is_none() {
            return Ok(Endpoint::Echo);
        }
        let model = variable("OPENAI_MODEL").ok_or_else(|| {
            Failure::Usage(
                "OPENAI_MODEL has to name the model where OPENAI_BASE_URL or OPENAI_API_KEY is set".to_owned(),
            )
        })?;
        Ok(Endpoint::OpenAi(OpenAi::new(base, key, model)))
    }

    pub fn describe(&self) -> String {
        match self {
            Endpoint::OpenAi(openai) => format!("{} at {}", openai.model, openai.base),
            Endpoint::Echo => {
                "an echo, no model: set OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL for one".to_owned()
            }
        }
    }

    /// The model, which shows the pieces of its answers.
    pub fn showing<'a>(&'a self, show: Show<'a>) -> Showing<'a> {
        Showing { endpoint: self, show }
    }
}

pub struct Showing<'a> {
    endpoint: &'a Endpoint,
    show: Show<'a>,
}

impl Model for Showing<'_> {
    type Error = Failure;

    fn call(&self, request: &ModelRequest) -> Result<Reply, Failure> {
        match self.endpoint {
            Endpoint::OpenAi(openai) => openai.call(request, self.show),
            Endpoint::Echo => Ok(echo::call(request, self.show)),
        }
    }
}
