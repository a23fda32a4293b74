//! Migrations on a real PostgreSQL server, with the real processes and three roles with passwords.

mod apply;
pub(crate) mod deaf;
mod fences;
mod outside;
mod roles;
pub(crate) mod shop;
mod tls;
