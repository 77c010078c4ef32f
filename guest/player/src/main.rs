//! A guest that decodes the pictures of a film beside Linux, where they are to lie.
#![no_std]
#![no_main]

extern crate alloc;

mod jpeg;
mod jpeg_decoder;
mod messages;

sinew_guest::kinds![jpeg_decoder::KIND];
