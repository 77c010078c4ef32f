//! Commands for things that have a name: regions, semaphores, queues, nodes, jobs.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::json;
use sinew_agent::{GuestNodeState, RegionWords};
use sinew_carve_out::{MadeBy, Name, SharedClass, SharedEntry, SharedHolds, SharedWish};

use super::tester::{Answer, Said, Tester, Wrong, name_of};

impl Tester {
    /// Finds or makes a region, semaphore or queue. A side must attach to a semaphore or queue
    /// before it can use it, so Linux attaches at once.
    pub(super) fn get(&mut self, name: &str, wish: &SharedWish, maker: MadeBy) -> Answer {
        let (name, within) = (name_of(name)?, self.within);
        let session = self.session()?;
        let entry = session.get(name, wish, maker, within)?;
        let is_held = session.list().iter().any(|it| it.entry == entry && it.linux > 0);
        if wish.class != SharedClass::Region && !is_held {
            session.attach(name, MadeBy::Linux, within)?;
        }
        let SharedEntry { maker, offset, .. } = entry;
        let (class, maker) = (wish.class.word(), maker.word());
        let text = format!("{class} '{name}': {} bytes at {offset:#x}, of {maker}", wish.size);
        let value = json!({
            "name": name.as_str(), "class": class, "bytes": wish.size, "offset": offset,
            "of": maker,
        });
        Ok(Said::new(text, value))
    }

    /// Attaches one side to it. Answers where that side sees it.
    pub(super) fn attach(&mut self, name: &str, side: MadeBy) -> Answer {
        let (name, within) = (name_of(name)?, self.within);
        let session = self.session()?;
        session.attach(name, side, within)?;
        let found = session.list().into_iter().find(|it| it.entry.name == name);
        let offset = found.map_or(0, |it| it.entry.offset);
        let address = match side {
            MadeBy::Linux => session.keeper.memory().words().as_ptr().addr() as u64,
            MadeBy::Guest => u64::from(session.view(within)?.virtual_address),
        } + u64::from(offset);
        let text = format!("{} holds '{name}', and sees it at {address:#x}", side.word());
        Ok(Said::new(text, json!({ "name": name.as_str(), "address": address })))
    }

    /// Detaches one side from it.
    pub(super) fn detach(&mut self, name: &str, side: MadeBy) -> Answer {
        let (name, within) = (name_of(name)?, self.within);
        self.session()?.detach(name, side, within)?;
        let text = format!("{} has detached '{name}'", side.word());
        Ok(Said::new(text, json!({ "name": name.as_str() })))
    }

    /// Removes it. With `lets_go`, Linux detaches first.
    pub(super) fn remove(&mut self, name: &str, lets_go: bool) -> Answer {
        let (name, within) = (name_of(name)?, self.within);
        let session = self.session()?;
        while lets_go && session.keeper.desk.registry.detach(name).is_ok() {}
        session.remove(name, within)?;
        Ok(Said::new(format!("'{name}' is removed"), json!({ "name": name.as_str() })))
    }

    /// Lists everything that has a name.
    pub(super) fn list(&mut self) -> Answer {
        let all = self.session()?.list();
        let mut text = format!("{} with a name", all.len());
        for SharedHolds { entry, linux, guest } in &all {
            let SharedEntry { name, maker, offset, wish, .. } = entry;
            let (class, maker) = (wish.class.word(), maker.word());
            let _ = write!(
                text,
                "\n{name:<31} {class:<9} {:>8} bytes at {offset:#08x} of {maker}, held {linux} \
                 times by linux, {guest} by guest",
                wish.size
            );
        }
        let value = |it: &SharedHolds| {
            json!({
                "name": it.entry.name.as_str(), "class": it.entry.wish.class.word(),
                "bytes": it.entry.wish.size, "offset": it.entry.offset,
                "hash": it.entry.wish.hash, "of": it.entry.maker.word(),
                "held_by_linux": it.linux, "held_by_guest": it.guest,
            })
        };
        let values: Vec<_> = all.iter().map(value).collect();
        Ok(Said::new(text, json!({ "entries": values })))
    }

    /// Writes a text to the start of a region that Linux is attached to.
    pub(super) fn write(&mut self, name: &str, data: &str) -> Answer {
        let (words, size) = self.region(name)?;
        if data.len() > size {
            let len = data.len();
            return Err(Wrong::Request(format!("{len} bytes do not fit into {size}")));
        }
        words.write(0, data.as_bytes());
        Ok(Said::new(format!("{} bytes written", data.len()), json!({ "bytes": data.len() })))
    }

    /// Reads from the start of a region that Linux is attached to.
    pub(super) fn read(&mut self, name: &str, len: usize) -> Answer {
        let (words, size) = self.region(name)?;
        let mut data = vec![0; len.min(size)];
        words.read(0, &mut data);
        Ok(show(&data))
    }

    fn region(&mut self, name: &str) -> Result<(RegionWords, usize), Wrong> {
        let name = name_of(name)?;
        let registry = &self.session()?.keeper.desk.registry;
        let size = registry.held(name, SharedClass::Region)?.wish.size;
        Ok((registry.region(name)?, size as usize))
    }

    /// Adds a token to a semaphore.
    pub(super) fn post(&mut self, name: &str) -> Answer {
        let name = name_of(name)?;
        self.session()?.post(name)?;
        self.tokens(name, "posted")
    }

    /// Takes a token from a semaphore.
    pub(super) fn take(&mut self, name: &str) -> Answer {
        let (name, within) = (name_of(name)?, self.within);
        self.session()?.take(name, within)?;
        self.tokens(name, "taken")
    }

    fn tokens(&mut self, name: Name, verb: &str) -> Answer {
        let semaphore = self.session()?.keeper.desk.registry.semaphore(name)?;
        let (linux, guest) = semaphore.tokens().map_err(|it| Wrong::Failed(it.to_string()))?;
        let text = format!("{verb}; linux has {linux} tokens, guest {guest}");
        Ok(Said::new(text, json!({ "linux": linux, "guest": guest })))
    }

    /// Sends a text as a message. The rest of the message is zeros.
    pub(super) fn send(&mut self, name: &str, data: &str) -> Answer {
        let (name, within) = (name_of(name)?, self.within);
        let session = self.session()?;
        let entry = session.keeper.desk.registry.held(name, SharedClass::Queue)?;
        let size = entry.wish.detail[0] as usize;
        if data.len() > size {
            let len = data.len();
            return Err(Wrong::Request(format!("{len} bytes do not fit into messages of {size}")));
        }
        let mut message = vec![0; size];
        message[..data.len()].copy_from_slice(data.as_bytes());
        session.send(name, &message, within)?;
        Ok(Said::new("sent", json!({ "bytes": size })))
    }

    /// Receives a message.
    pub(super) fn receive(&mut self, name: &str) -> Answer {
        let (name, within) = (name_of(name)?, self.within);
        let session = self.session()?;
        let entry = session.keeper.desk.registry.held(name, SharedClass::Queue)?;
        let mut message = vec![0; entry.wish.detail[0] as usize];
        session.receive(name, &mut message, within)?;
        Ok(show(&message))
    }

    /// Lists the nodes of the guest.
    pub(super) fn nodes(&mut self) -> Answer {
        let within = self.within;
        let nodes = self.session()?.nodes(within)?;
        let line =
            |it: &GuestNodeState| format!("\n{:<31} {}, {} cycles", it.name, it.state, it.cycles);
        let text: String = nodes.iter().map(line).collect();
        let value = |it: &GuestNodeState| {
            let GuestNodeState { name, state, cycles } = it;
            json!({ "name": name, "state": state, "cycles": cycles })
        };
        let values: Vec<_> = nodes.iter().map(value).collect();
        Ok(Said::new(format!("{} nodes{text}", nodes.len()), json!({ "nodes": values })))
    }

    /// Stops one node.
    pub(super) fn stop_node(&mut self, name: &str) -> Answer {
        let (name, within) = (name_of(name)?, self.within);
        self.session()?.stop_node(name, within)?;
        let text = format!("'{name}' stops in order; the others go on");
        Ok(Said::new(text, json!({ "name": name.as_str() })))
    }

    /// Lists the jobs of the image.
    pub(super) fn jobs(&mut self) -> Answer {
        let within = self.within;
        let jobs = self.session()?.jobs(within)?;
        let line = |(name, doc): &(String, String)| format!("\n{name:<12} {doc}");
        let text: String = jobs.iter().map(line).collect();
        let value = |(name, doc): &(String, String)| json!({ "name": name, "doc": doc });
        let values: Vec<_> = jobs.iter().map(value).collect();
        Ok(Said::new(format!("{} jobs{text}", jobs.len()), json!({ "jobs": values })))
    }

    /// Calls a job. Words that are numbers are the job's numbers, the others its text.
    pub(super) fn call(&mut self, job: &str, words: &[&str]) -> Answer {
        let (name, within) = (name_of(job)?, self.within);
        let (mut numbers, mut given, mut texts) = ([0; 5], 0, Vec::new());
        for word in words {
            match (word.parse(), numbers.get_mut(given)) {
                (Ok(number), Some(place)) => (*place, given) = (number, given + 1),
                _ => texts.push(*word),
            }
        }
        let session = self.session()?;
        let begun = Instant::now();
        let answer = session.call(name, numbers, texts.join(" ").as_bytes(), within)?;
        let took_us = begun.elapsed().as_micros() as u64;
        let (numbers, words) = (answer.numbers, answer.text());
        let text = format!("answer after {took_us} us: {numbers:?} '{words}'");
        Ok(Said::new(text, json!({ "numbers": numbers, "text": words, "took_us": took_us })))
    }
}

/// Shows bytes as text if they are text, otherwise in hexadecimal.
fn show(data: &[u8]) -> Said {
    let end = data.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
    let text = match std::str::from_utf8(&data[..end]) {
        Ok(text) if !text.chars().any(char::is_control) => format!("'{text}'"),
        _ => data[..end].iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let value = json!({ "bytes": data.len(), "data": text });
    Said::new(format!("{} bytes: {text}", data.len()), value)
}
