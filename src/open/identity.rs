//! Determines whether two paths or open files refer to the same file.
//!
//! If an output is also an input, the input is lost, or is read while it is written. Comparing
//! paths cannot prevent this, because a hard link, a symbolic link or `./` can lead to the same
//! file. Files are therefore compared by device and inode, or by the equivalent on other systems.
//! Only a regular file that exists has an identity. Everything else is considered different from
//! every file.

use crate::error::display_path;
use crate::{Error, Result};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Identifies a regular file by its device and inode, or by the equivalent on other systems,
/// regardless of the path or link that leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIdentity(System);

#[cfg(unix)]
type System = (u64, u64);
/// The handle keeps the file open, because only an open file keeps its identity.
#[cfg(not(unix))]
type System = std::sync::Arc<same_file::Handle>;

impl FileIdentity {
    /// Returns the identity of an open file; `None` if it is not a regular file but, for example, a
    /// pipe.
    pub fn of(file: &File) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(None);
        }
        #[cfg(unix)]
        return Ok(Some(Self(device_and_inode(&metadata))));
        #[cfg(not(unix))]
        return Ok(Some(Self(same_file::Handle::from_file(file.try_clone()?)?.into())));
    }

    /// Returns the identity of the file at `path`; `None` if it does not exist or is not a regular
    /// file.
    pub fn at(path: impl AsRef<Path>) -> io::Result<Option<Self>> {
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !metadata.is_file() {
            return Ok(None); // opening a pipe can block forever
        }
        #[cfg(unix)]
        return Ok(Some(Self(device_and_inode(&metadata))));
        #[cfg(not(unix))]
        return Ok(Some(Self(same_file::Handle::from_path(path)?.into())));
    }
}

#[cfg(unix)]
fn device_and_inode(metadata: &fs::Metadata) -> System {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Refuses an `output` that is one of the inputs. Each input is given with its path.
pub(crate) fn refuse_same<'a>(
    output: Option<FileIdentity>,
    path: Option<&Path>,
    inputs: impl IntoIterator<Item = (Option<FileIdentity>, Option<&'a Path>)>,
) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    let Some((_, name)) = inputs.into_iter().find(|(input, _)| input.as_ref() == Some(&output)) else {
        return Ok(());
    };
    let input = name.map(|name| format!(" {}", display_path(name))).unwrap_or_default();
    let error = Error::bad_argument(format!("the output is the same file as the input{input}; write to another file"));
    Err(match path {
        Some(path) => error.with_path(path),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &Path) -> Option<FileIdentity> {
        FileIdentity::at(path).unwrap()
    }

    #[test]
    fn a_file_is_the_same_by_any_path_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), "same bytes").unwrap();
        fs::write(path("b"), "same bytes").unwrap();
        fs::hard_link(path("a"), path("hard")).unwrap();
        assert!(at(&path("a")).is_some());
        assert_eq!(at(&path("a")), at(&path("hard")));
        assert_eq!(at(&path("a")), at(&path("./a")));
        assert_eq!(at(&path("a")), FileIdentity::of(&File::open(path("hard")).unwrap()).unwrap());
        assert_ne!(at(&path("a")), at(&path("b")));
        assert_eq!((at(&path("nothing")), at(folder.path())), (None, None));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("a", path("link")).unwrap();
            assert_eq!(at(&path("a")), at(&path("link")));
            assert_eq!(at(Path::new("/dev/null")), None);
        }
    }

    #[test]
    fn only_an_output_that_is_an_input_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&a, "").unwrap();
        fs::write(&b, "").unwrap();
        let check = |output: &Path| refuse_same(at(output), Some(output), [(None, None), (at(&a), Some(a.as_path()))]);
        let error = check(&a).unwrap_err();
        assert_eq!((error.kind(), error.path()), (crate::ErrorKind::BadArgument, Some(a.as_path())));
        assert!(check(&b).is_ok());
        assert!(refuse_same(None, None, [(None, None)]).is_ok(), "files without an identity are not the same");
    }
}
