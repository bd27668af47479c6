//! File systems of a test's own, in a mount namespace of its own: with its last process the kernel takes away every mount, and
//! with the mount its loop device, however the test ends.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::tempdir;

use crate::support::{has_programs, run_child_under, skip};

const OWN_MOUNTS: [&str; 4] = ["unshare", "--mount", "--propagation", "private"];

/// Runs a test's part `mounts` where it may mount, in a directory that goes afterwards; skips where that is not allowed.
pub fn in_own_mounts(test: &str) {
    if !has_programs(&["unshare", "mount"]) {
        return;
    }
    let tried = Command::new(OWN_MOUNTS[0]).args(&OWN_MOUNTS[1..]).arg("true").output().unwrap();
    if !tried.status.success() {
        skip(&format!("no mounts of its own: {}", String::from_utf8_lossy(&tried.stderr).trim()));
        return;
    }
    let directory = tempdir().unwrap();
    run_child_under(&OWN_MOUNTS, test, "mounts", directory.path());
}

/// Runs a program, which has to succeed, and gives what it printed; else what it complained of.
pub fn run(command: &[&str]) -> Result<String, String> {
    match Command::new(command[0]).args(&command[1..]).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// A file system in an image file, mounted.
pub struct Volume {
    image: String,
    options: String,
    place: PathBuf,
}

impl Volume {
    /// Makes and mounts one: `ext4` or `xfs`, and the size of the image, which is sparse; XFS takes 300 MiB or more.
    pub fn new(file_system: &str, megabytes: u64, options: &str, directory: &Path) -> Result<Self, String> {
        let image = directory.join(format!("{file_system}.image"));
        let place = directory.join(file_system);
        std::fs::create_dir(&place).unwrap();
        std::fs::File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
        let image = image.to_str().unwrap().to_owned();
        run(&[&format!("mkfs.{file_system}"), "-q", &image])?;
        let volume = Self { image, options: format!("loop{options}"), place };
        volume.mount().map(|()| volume)
    }

    /// Where it is mounted.
    pub fn place(&self) -> &Path {
        &self.place
    }

    fn mount(&self) -> Result<(), String> {
        run(&["mount", "-o", &self.options, &self.image, self.place.to_str().unwrap()]).map(drop)
    }

    /// Shuts the file system down at once: what is not on the disk by now, its journal included, never will be.
    pub fn cut_power(&self) {
        run(&["xfs_io", "-r", "-x", "-c", "shutdown", self.place.to_str().unwrap()]).unwrap();
    }

    /// Has the kernel find an error in it; for ext4.
    pub fn fail(&self) -> std::io::Result<()> {
        let device = run(&["findmnt", "-no", "SOURCE", self.place.to_str().unwrap()]).unwrap();
        let device = Path::new(device.trim()).file_name().unwrap().to_owned();
        std::fs::write(Path::new("/sys/fs/ext4").join(device).join("trigger_fs_error"), "a test")
    }

    /// Mounts it again, as after a restart. Nothing in it may be open.
    pub fn restart(&self) {
        run(&["umount", self.place.to_str().unwrap()]).unwrap();
        self.mount().unwrap();
    }
}
