#![no_std]
//! Links.
