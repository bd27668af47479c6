//! What all generations of tools do with files, and say of them.

use serde::Serialize;

use super::{Failure, refused, shown};
use crate::error::Error;
use crate::file_memory::name::{FileName, FolderName};
use crate::file_memory::search::{Findings, LinePattern, NamePattern};
use crate::file_memory::store::{Description, FileStore, Precondition, Quota, Save, Version};

/// As many bytes of a file as are read for a model, and so as many as an edit makes of it.
pub(super) const MAX_TEXT_BYTES: u64 = 64 << 20;
/// As many bytes of a list as a model is shown.
const MAX_LIST_BYTES: usize = 256 << 10;

/// One session's files, for one call.
pub(crate) struct Notebook<'a> {
    pub(crate) store: &'a dyn FileStore,
    pub(crate) folder: &'a FolderName,
    pub(crate) quota: Quota,
}

/// A text file as it is.
pub(super) struct TextFile {
    pub(super) text: String,
    version: Version,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ListElement {
    #[serde(rename_all = "camelCase")]
    File {
        file_name: String,
        description: Option<String>,
    },
    NotShown(String),
}

impl Notebook<'_> {
    pub(super) fn save(
        &self,
        name: &FileName,
        content: &str,
        description: Description<'_>,
        precondition: Precondition,
    ) -> Result<(), Error> {
        let save = Save { name, content: content.as_bytes(), description, precondition, quota: self.quota };
        self.store.save(self.folder, &save).map(|_| ())
    }

    /// The text of a file, or `None` where there is no such file.
    pub(super) fn text(&self, name: &FileName) -> Result<Option<TextFile>, Failure> {
        let file = match self.store.read(self.folder, name, MAX_TEXT_BYTES) {
            Err(Error::TooLarge { size, limit, .. }) => {
                return refused(format!(
                    "File '{name}' is too large to be read: more than {} bytes; the limit is {limit}.",
                    size - 1
                ));
            }
            read => read?,
        };
        let Some(file) = file else { return Ok(None) };
        match String::from_utf8(file.content) {
            Ok(text) => Ok(Some(TextFile { text, version: file.version })),
            Err(error) => refused(format!(
                "File '{name}' is binary, {} bytes, and cannot be shown or edited as text.",
                error.as_bytes().len()
            )),
        }
    }

    /// The same, where a file that is missing is for the model to hear of.
    pub(super) fn text_of(&self, name: &FileName) -> Result<String, Failure> {
        self.text(name)?.map_or_else(|| not_found(name), |file| Ok(file.text))
    }

    /// Changes a text; when somebody else changes it at the same time, from what it is then. Each round that fails is one in
    /// which somebody else got something done, so this comes to an end.
    pub(super) fn edit<T>(
        &self,
        name: &FileName,
        change: impl Fn(&str) -> Result<(String, T), Failure>,
    ) -> Result<Option<T>, Failure> {
        loop {
            let Some(file) = self.text(name)? else { return Ok(None) };
            let (text, result) = change(&file.text)?;
            match self.save(name, &text, Description::Keep, Precondition::Unchanged(file.version)) {
                Err(Error::Conflict { .. }) => {}
                saved => return Ok(saved.map(|()| Some(result))?),
            }
        }
    }

    /// Adds to the end of a file, or begins one.
    pub(super) fn append(&self, name: &FileName, text: &str) -> Result<(), Failure> {
        loop {
            if self.edit(name, |before| Ok((format!("{before}{text}"), ())))?.is_some() {
                return Ok(());
            }
            match self.save(name, text, Description::Remove, Precondition::Absent) {
                Err(Error::Conflict { .. }) => {}
                saved => return Ok(saved?),
            }
        }
    }

    pub(super) fn delete(&self, name: &FileName) -> Result<(), Failure> {
        if self.store.delete(self.folder, name)? { Ok(()) } else { not_found(name) }
    }

    /// All files with their descriptions, as JSON.
    pub(super) fn list(&self, pattern: Option<&str>) -> Result<String, Failure> {
        let pattern = NamePattern::new(pattern).map_err(Failure::Refused)?;
        let files = self.store.list(self.folder)?;
        let files: Vec<_> = files.into_iter().filter(|file| pattern.matches(&file.name)).collect();
        let (mut elements, mut bytes) = (Vec::new(), 0);
        for file in &files {
            let description = file.description.as_deref().map(str::to_owned);
            bytes += file.name.as_str().len() + description.as_ref().map_or(0, String::len) + 32;
            if bytes > MAX_LIST_BYTES && !elements.is_empty() {
                elements.push(ListElement::NotShown(format!("… and {} more", files.len() - elements.len())));
                break;
            }
            elements.push(ListElement::File { file_name: file.name.to_string(), description });
        }
        Ok(serde_json::to_string(&elements).unwrap_or_default())
    }

    /// The lines that match a pattern, as JSON.
    pub(super) fn search(&self, pattern: &str, files: Option<&str>) -> Result<String, Failure> {
        let pattern = LinePattern::new(pattern).map_err(Failure::Refused)?;
        let names = NamePattern::new(files).map_err(Failure::Refused)?;
        let mut findings = Findings::new();
        for file in self.store.list(self.folder)?.iter().filter(|file| names.matches(&file.name)) {
            if !findings.has_time() {
                continue;
            }
            match self.store.read(self.folder, &file.name, MAX_TEXT_BYTES) {
                Ok(Some(found)) => findings.look_into(&pattern, &file.name, &found.content),
                // It went meanwhile, or a link took its place.
                Ok(None) | Err(Error::InvalidFileName { .. }) => {}
                Err(Error::TooLarge { .. }) => findings.skip(&file.name),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(findings.into_json())
    }
}

/// A name as the model gave it, checked.
pub(super) fn file_name(name: &str) -> Result<FileName, Failure> {
    match FileName::new(name) {
        Ok(name) => Ok(name),
        Err(Error::InvalidFileName { rule }) => {
            refused(format!("The file name '{}' is not allowed: {rule}.", shown(name)))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn not_found<T>(name: &FileName) -> Result<T, Failure> {
    refused(format!("File '{name}' not found."))
}
