use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::Access;

use super::State;

/// A part that a file is: it must stay the same file, and it and its folder must be writable.
///
/// The file is never opened: closing another handle of a database would drop the locks on it.
pub fn kept(file: &Path) -> io::Result<impl Fn() -> State + Send + Sync + use<>> {
    let (file, was) = (file.to_owned(), identity(file)?);
    Ok(move || look(&file, was))
}

fn identity(file: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::metadata(file)?;
    Ok((metadata.dev(), metadata.ino()))
}

fn look(file: &Path, was: (u64, u64)) -> State {
    let shown = file.display();
    match identity(file) {
        Err(error) => return State::Not(format!("{shown}: {error}")),
        Ok(is) if is != was => return State::Not(format!("{shown} is another file than the one in use")),
        Ok(_) => {}
    }
    for path in [Some(file), file.parent()].into_iter().flatten() {
        if let Err(error) = rustix::fs::access(path, Access::WRITE_OK) {
            return State::Not(format!("{} can't be written: {error}", path.display()));
        }
    }
    State::Ok
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_or_another_one_is_not_ok() {
        let folder = std::env::temp_dir().join(format!("holdfast-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("journal");
        assert!(kept(&file).is_err());
        fs::write(&file, "1").unwrap();
        let look = kept(&file).unwrap();
        assert_eq!(look(), State::Ok);
        fs::rename(&file, folder.join("moved")).unwrap();
        assert!(matches!(look(), State::Not(why) if why.contains("No such file")));
        fs::write(&file, "2").unwrap();
        assert!(matches!(look(), State::Not(why) if why.contains("another file")));
        fs::rename(folder.join("moved"), &file).unwrap();
        assert_eq!(look(), State::Ok);
        fs::remove_dir_all(&folder).unwrap();
    }
}
