//! Files that a deployment's file wants uploaded: found, checked against their digests, and sent before it is submitted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use holdfast_common::code::Code;
use holdfast_common::file::{DeploymentFile, uploads_without_digest};
use holdfast_common::problem::Problem;
use holdfast_common::spec::hex;
use holdfast_common::text::one_line;
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// A file whose digest is the one that is asked for.
#[derive(Debug)]
pub struct Upload {
    /// As the deployment's file names it.
    pub name: String,
    /// Lower-case hex.
    pub sha256: String,
    /// Its length in bytes.
    pub size: u64,
    file: File,
}

impl Upload {
    /// The bytes from an offset on, at most `most`.
    pub fn read(&mut self, offset: u64, most: u64) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(offset))?;
        let mut data = Vec::new();
        self.file.by_ref().take(most).read_to_end(&mut data)?;
        Ok(data)
    }
}

/// The folder that uploads are relative to: the deployment file's own, or this process's where the file came from the input.
#[must_use]
pub fn folder_of(file: &str) -> PathBuf {
    match file {
        "-" => PathBuf::new(),
        file => Path::new(file).parent().map(Path::to_owned).unwrap_or_default(),
    }
}

/// The files of [`find`] that are not there: a file can be valid before everything that it names is built.
#[must_use]
pub fn absent(text: &str, inputs: &BTreeMap<String, String>, folder: &Path) -> Vec<String> {
    let Ok(file) = DeploymentFile::parse(text) else { return Vec::new() };
    file.uploads(inputs).into_iter().map(|(name, _)| name).filter(|name| !folder.join(name).exists()).collect()
}

/// Everything to upload, or what is wrong with one of them. Nothing of a file that can't be read: the coordinator says why.
pub fn find(text: &str, inputs: &BTreeMap<String, String>, folder: &Path) -> Result<Vec<Upload>, Failure> {
    let Ok(file) = DeploymentFile::parse(text) else { return Ok(Vec::new()) };
    file.uploads(inputs).into_iter().map(|(name, sha256)| open(name, sha256, folder)).collect()
}

fn open(name: String, sha256: String, folder: &Path) -> Result<Upload, Failure> {
    let shown = one_line(&name);
    let (file, size, found) = digest(&folder.join(&name)).map_err(|error| {
        Problem::new(Code::ArchiveMissing, format!("could not read {shown}, which is to be uploaded: {error}"))
            .so("nothing was sent")
            .next("paths after \"upload:\" are relative to the deployment's file")
    })?;
    if found == sha256 {
        return Ok(Upload { name, sha256, size, file });
    }
    Err(Problem::new(Code::ArchiveDiffers, format!("{shown} is not the archive that the file asks for"))
        .known(format!("sha256 of {shown} is {found}"))
        .known(format!("the file asks for {}", one_line(&sha256)))
        .so("nothing was sent")
        .next(format!("if {shown} is the right one: sha256 = \"{found}\""))
        .with("sha256", &found)
        .into())
}

/// Adds the digests that a file with faults does not tell, so that they can be put in.
#[must_use]
pub fn with_digests(failure: Failure, text: &str, folder: &Path) -> Failure {
    let Failure::Refused { mut problems, exit } = failure else { return failure };
    for name in uploads_without_digest(text) {
        let shown = one_line(&name);
        let Ok((_, _, found)) = digest(&folder.join(&name)) else { continue };
        let about = |problem: &&mut Problem| {
            problem.metadata.get("key").is_some_and(|key| key.ends_with(".with") || key.ends_with(".sha256"))
        };
        if let Some(problem) = problems.iter_mut().find(about) {
            problem.known.push(format!("sha256 of {shown} is {found}"));
        }
    }
    Failure::Refused { problems, exit }
}

fn digest(path: &Path) -> io::Result<(File, u64, String)> {
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut digest = Sha256::new();
    let size = io::copy(&mut file, &mut digest)?;
    Ok((file, size, hex(&digest.finalize())))
}
