//! WebSockets of clients: opened honestly, served as HTTP is, bounded, and closed with the right code.

mod calls;
mod ends;
mod frames;
mod handshake;
mod only;
