//! The two files that people write.
