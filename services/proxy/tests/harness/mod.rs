//! Starts the real binary in front of scripted providers and asks it things.

mod client;
mod command;
mod proxy;
mod world;

pub(crate) use client::{Client, Reply, call, calls, right};
pub(crate) use command::run;
pub(crate) use proxy::Proxy;
pub(crate) use world::{Builder, World};
