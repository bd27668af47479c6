//! What the fuzz targets share. What must hold of the library's own insides is in its `src/fuzzing.rs`.

pub mod disk;
pub mod forge;
pub mod memory;
