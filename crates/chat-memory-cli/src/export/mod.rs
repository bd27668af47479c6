//! Conversations in forms for people and other programs.
