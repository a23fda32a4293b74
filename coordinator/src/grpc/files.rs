//! Reading operators' files.
//!
//! How long that takes is the file's to say, and a thread that serves an operator serves agents, too. So only what is small is read
//! where it arrives; the rest is read beside the serving threads, one file for each processor at once.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tonic::Status;

/// Bytes of a file that are read where it arrives.
const SMALL: usize = 8 * 1024;

/// Turns to read what is not small. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Files(Arc<Semaphore>);

impl Default for Files {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from))))
    }
}

impl Files {
    /// Reads a file of so many bytes.
    ///
    /// # Errors
    /// The reading panicked.
    pub async fn read<R: Send + 'static>(
        &self,
        bytes: usize,
        read: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Status> {
        if bytes <= SMALL {
            return Ok(read());
        }
        let turn = Arc::clone(&self.0).acquire_owned().await.expect("nobody closes it");
        let reading = tokio::task::spawn_blocking(move || {
            // Until it is read, also where nobody waits for it any more.
            let _turn = turn;
            read()
        });
        reading.await.map_err(|_| Status::internal("the file could not be read"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_large_file_is_read_beside_the_thread_that_serves_and_a_small_one_on_it() {
        let files = Files::default();
        let here = std::thread::current().id();
        let thread = || std::thread::current().id();
        assert_eq!(files.read(SMALL, thread).await.unwrap(), here);
        assert_ne!(files.read(SMALL + 1, thread).await.unwrap(), here);
    }

    #[tokio::test]
    async fn no_more_are_read_at_once_than_there_are_processors_also_where_nobody_waits_for_them() {
        let files = Files(Arc::new(Semaphore::new(1)));
        let (finish, held) = std::sync::mpsc::channel::<()>();
        let given_up = files.read(SMALL + 1, move || held.recv().unwrap_err());
        tokio::time::timeout(Duration::from_millis(50), given_up).await.expect_err("it is held up");
        let second = files.read(SMALL + 1, || ());
        tokio::pin!(second);
        tokio::time::timeout(Duration::from_millis(50), &mut second).await.expect_err("the first is still being read");
        drop(finish);
        second.await.unwrap();
    }
}
