//! A guest beside Linux that decodes the pictures of a film, directly in their final places.
#![no_std]
#![no_main]

extern crate alloc;

mod jpeg;
mod jpeg_decoder;
mod messages;

sinew_guest::kinds![jpeg_decoder::KIND];
