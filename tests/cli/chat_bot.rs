//! `graphs/apps/chat_bot`, killed at random moments between a chat and a model: each message is in
//! the database once, is answered once in the end, and in the order of its user. Two variants of
//! the graph with a mistake show that the comparison can fail.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use ring::hmac;
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::control::Place;
use crate::program::{Running, SINEW, children, folder, ours, send, wait_until};

/// Number of kills of the bot. `SINEW_KILL_ROUNDS=100 cargo test` sets more.
const ROUNDS: u64 = 3;
/// Messages that are sent before each kill.
const MESSAGES: u64 = 6;
const USERS: u64 = 3;
/// Most kills of its domain in a row.
const DEATHS_MAX: u64 = 5;
/// Most earlier messages that the bot sends to the model.
const HISTORY_MAX: usize = 10;
/// A client that waits longer than this for an answer has found a hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// The bot with its database in a folder of its own, and the messages that it was sent.
struct Bot {
    folder: PathBuf,
    fakes: String,
    port: u16,
    /// Ids and texts of the messages, in the order in which they were accepted.
    sent: Vec<(String, String)>,
}

impl Bot {
    /// The application with edits in its text, connected to a model and a chat at this address.
    fn new(name: &str, fakes: &str, edits: &[(&str, &str)]) -> Bot {
        let folder = folder(name);
        let text = fs::read_to_string(ours("graphs/apps/chat_bot/chat_bot.yaml"));
        let text = edits.iter().fold(text.expect("the graph"), |text, (from, to)| {
            assert!(text.contains(from), "the application has no '{from}' any more");
            text.replace(from, to)
        });
        fs::write(folder.join("chat_bot.yaml"), text).expect("a place for it");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let port = port.expect("a free port").port();
        Bot { folder, fakes: format!("http://{fakes}"), port, sent: Vec::new() }
    }

    fn start(&self) -> Running {
        // If a supervisor was killed, its domain ends a moment later.
        wait_until("the one before has gone", || !self.listens());
        let mut command = Command::new(SINEW);
        command.arg("run").arg(self.folder.join("chat_bot.yaml"));
        command.env("PORT", self.port.to_string()).env("WEBHOOK_SECRET", "only a test");
        command.env("MODEL", &self.fakes).env("CHAT", &self.fakes);
        let running = Running::start(command);
        self.wait();
        running
    }

    /// Waits until the bot listens.
    fn wait(&self) {
        wait_until("the bot listens", || self.listens());
    }

    fn listens(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    /// Sends a signed message. Returns the status of the answer, if one comes.
    fn post(&self, id: &str, user: u64, text: &str) -> Option<u16> {
        let body = json!({"id": id, "user": format!("user{user}"), "text": text}).to_string();
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"only a test");
        let digest = hmac::sign(&key, body.as_bytes());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let request = format!(
            "POST /webhook HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: \
             application/json\r\nX-Signature: sha256={hex}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1)?.parse().ok()
    }

    /// Sends a new message, again and again until it is accepted, as chat services do.
    fn say(&mut self) {
        let number = self.sent.len() as u64;
        let (id, text) = (format!("m{number}"), format!("number {number}"));
        wait_until("it is taken", || self.post(&id, number % USERS, &text) == Some(202));
        self.sent.push((id, text));
    }

    fn database(&self) -> Connection {
        let database = Connection::open(self.folder.join("chat.db")).expect("a database");
        database.busy_timeout(PATIENCE).expect("a database");
        database
    }

    /// How many messages have no answer.
    fn open_count(&self) -> u64 {
        let text = "SELECT count(*) FROM messages WHERE answer IS NULL";
        self.database().query_row(text, [], |row| row.get::<_, i64>(0)).expect("a table") as u64
    }

    /// The answers in the database, by the ids of their messages.
    fn answers(&self) -> BTreeMap<String, Vec<String>> {
        let database = self.database();
        let mut statement = database.prepare("SELECT id, answer FROM messages").expect("a table");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        let mut answers = BTreeMap::<String, Vec<String>>::new();
        for row in rows {
            let (id, answer): (String, String) = row.expect("a row, answered");
            answers.entry(id).or_default().push(answer);
        }
        answers
    }

    /// The messages that are lost, and the messages that are there twice.
    fn wrong(&self) -> (Vec<String>, Vec<String>) {
        let answers = self.answers();
        let ids = self.sent.iter().map(|(id, _)| id.clone());
        let lost = ids.clone().filter(|id| !answers.contains_key(id)).collect();
        (lost, ids.filter(|id| answers.get(id).is_some_and(|all| all.len() > 1)).collect())
    }

    /// The model's answer to message `at`, if the model was sent all earlier messages.
    fn expected(&self, at: usize) -> String {
        let before = (at / USERS as usize).min(HISTORY_MAX);
        format!("You said \"{}\" after {before} others. ", self.sent[at].1)
    }
}

/// The model and the chat, which are never killed.
fn fakes(place: &Place) -> (Running, String, Api) {
    let graph = ours("graphs/apps/chat_bot/fakes.yaml").display().to_string();
    let (running, pid) = place.run(&[&graph, "--set", "fakes.port=0"]);
    let api = Api::of(place, &pid, "services");
    let address = place.domain(&pid, "services")["address"].as_str().map(str::to_owned);
    let address = address.expect("just seen").trim_start_matches("http://").to_owned();
    (running, address.trim_end_matches('/').to_owned(), api)
}

#[test]
#[expect(clippy::print_stdout, reason = "what the kills have met is a result")]
fn a_bot_that_is_killed_answers_each_message_once_and_in_its_order() {
    let place = Place::new("chat_bot");
    let (chat, address, api) = fakes(&place);
    let mut bot = Bot::new("chat_bot_killed", &address, &[]);
    let rounds = std::env::var("SINEW_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let seed = fastrand::u64(..);
    let (mut chance, mut met) = (fastrand::Rng::with_seed(seed), (0, 0, 0));
    let (mut running, mut deaths) = (bot.start(), 0);
    for _ in 0..rounds.unwrap_or(ROUNDS) {
        (0..MESSAGES).for_each(|_| bot.say());
        sleep(Duration::from_millis(chance.u64(..150)));
        met.2 += u64::from(bot.open_count() > 0);
        // A supervisor gives up a domain that dies too often.
        if deaths == DEATHS_MAX || chance.bool() {
            send(running.pid(), Signal::KILL);
            met.0 += 1;
            drop(running.answer());
            (running, deaths) = (bot.start(), 0);
        } else {
            let dead = running.domains(1);
            send(dead[0], Signal::KILL);
            met.1 += 1;
            deaths += 1;
            wait_until("another one is there", || {
                let now = children(running.pid());
                now.len() == 1 && now != dead
            });
            bot.wait();
        }
    }
    wait_until("all is answered", || bot.open_count() == 0);
    println!("killed {} supervisors, {} domains, {} with open messages", met.0, met.1, met.2);
    assert_eq!(bot.wrong(), (vec![], vec![]), "seed {seed}");
    let answers = bot.answers();
    for (at, (id, _)) in bot.sent.iter().enumerate() {
        let expected = bot.expected(at);
        assert_eq!(answers[id], std::slice::from_ref(&expected), "seed {seed}");
        let (status, shown) = api.ask_with("GET", &format!("/messages/{id}"), "", "");
        assert_eq!((status, &shown["done"]), (200, &json!(true)), "{id}, seed {seed}");
        assert_eq!(shown["text"], Value::from(expected), "{id}, seed {seed}");
    }
    send(running.pid(), Signal::INT);
    running.answer().ended_with(0);
    place.stop(chat);
}

#[test]
fn a_bot_whose_messages_have_no_key_has_them_twice() {
    let edits = [
        ("id TEXT NOT NULL UNIQUE", "id TEXT NOT NULL"),
        ("    ON CONFLICT (id) DO UPDATE SET text = messages.text\n", ""),
    ];
    let place = Place::new("chat_bot_key");
    let (_chat, address, _) = fakes(&place);
    let mut bot = Bot::new("chat_bot_without_a_key", &address, &edits);
    let _running = bot.start();
    bot.say();
    // The answer to this message was lost on its way.
    assert_eq!(bot.post("m0", 0, "number 0"), Some(202));
    wait_until("all is answered", || bot.open_count() == 0);
    assert_eq!(bot.wrong(), (vec![], vec!["m0".to_owned()]));
}

#[test]
fn a_bot_that_takes_a_message_before_it_has_it_loses_it() {
    let early = "ports: {out: [{name: accepted, port: in}, {name: not_yet, port: in}]}
- {kind: fork, name: not_yet, ports: {out: [{name: sleepy, port: in}]}}
- {kind: sleep, name: sleepy, duration: 1m, ports: {out: [{name: inbox, port: in}]}}";
    let edits = [
        ("  ports: {out: [{name: inbox, port: in}]}", &*format!("  {early}")),
        (
            "{out: [{name: accepted, port: in}, {name: soon, port: in}]}\n- {kind: snippet",
            "{out: [{name: soon, port: in}]}\n- {kind: snippet",
        ),
    ];
    let place = Place::new("chat_bot_early");
    let (_chat, address, _) = fakes(&place);
    let mut bot = Bot::new("chat_bot_taken_early", &address, &edits);
    let running = bot.start();
    bot.say();
    send(running.pid(), Signal::KILL);
    drop(running.answer());
    let _running = bot.start();
    wait_until("all is answered", || bot.open_count() == 0);
    assert_eq!(bot.wrong(), (vec!["m0".to_owned()], vec![]));
}
