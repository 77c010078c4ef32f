//! `snippet`: makes a packet by a script, in one of several languages.

use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::{Made, Parameters};
use sinew_flow::{At, FLOW, FlowEntry, FlowNode, Make, Step, Value, error, input, output};

use super::languages::{LANGUAGES, Limits, Script};

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Node(make) };

static INFO: Kind = Kind {
    name: "snippet",
    doc: "Makes a packet by a script and passes it on; if its output is not linked, that is the \
          reply. Languages: text, html, json and yaml are templates, cel is an expression, lua and \
          javascript a function's body; html makes an answer, and shows values as text. Code is \
          compiled once, and nothing of a flow stays behind in it.",
    ports: &[
        input("in", "The packet; the script's variable 'packet'."),
        output("out", "What the script made."),
        error(),
    ],
    parameters: &[
        Parameter::new(
            "language",
            ParameterType::Choice(&["text", "html", "json", "yaml", "cel", "lua", "javascript"]),
        )
        .doc("What the code is written in."),
        Parameter::new("code", ParameterType::Yaml)
            .doc("The script; for json and yaml also what they stand for, as YAML."),
        Parameter::new(
            "time",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 10_000_000_000 },
        )
        .or("50ms")
        .doc("Longest that lua or javascript may run for a packet; then it is stopped."),
        Parameter::new(
            "instructions_max",
            ParameterType::Integer { min: 1_000, max: 10_000_000_000 },
        )
        .or("10000000")
        .doc("Most instructions that lua or javascript may carry out for a packet."),
        Parameter::new("memory", ParameterType::Size { min_bytes: 1 << 20, max_bytes: 1 << 30 })
            .or("16MiB")
            .doc("Most memory that lua or javascript may take, in each worker."),
    ],
    ..FLOW
};

struct Snippet(Box<dyn Script>);

fn make(parameters: &Parameters<'_>) -> Made<dyn FlowNode> {
    let name = parameters.text("language");
    let language = LANGUAGES.iter().find(|language| language.name == name);
    let language = language.expect("the table of parameters names the languages");
    let limits = Limits {
        time: parameters.duration("time"),
        instructions_max: parameters.integer("instructions_max").unsigned_abs(),
        memory_bytes: usize::try_from(parameters.size("memory")).unwrap_or(usize::MAX),
    };
    let spec = parameters.home.map(|(plan, _)| &plan.text);
    Ok(Box::new(Snippet((language.compile)(parameters.yaml("code"), &limits, spec)?)))
}

impl FlowNode for Snippet {
    fn handle<'a>(&'a self, at: At<'a>, _input: usize, packet: Value) -> Step<'a> {
        self.0.run(at.flow(), packet)
    }
}

#[cfg(test)]
mod tests {
    use sinew_flow::Value;

    use super::LANGUAGES;
    use crate::testing::{refusals, reply};

    fn graph(language: &str, code: &str) -> String {
        let code = code.replace('\n', "\n            ");
        format!(
            "
        - kind: snippet
          name: a
          language: {language}
          code: {code}
        "
        )
    }

    fn made(language: &str, code: &str, packet: Value) -> Value {
        let reply = reply(&graph(language, code), packet);
        reply.unwrap_or_else(|error| panic!("{code}: {error}")).expect("a value")
    }

    #[test]
    fn every_language_is_a_choice_and_answers() {
        let codes = [
            ("text", "hello {{ packet }}", "\"hello you\""),
            (
                "html",
                "<b>{{ packet }}</b>",
                r#"{"header":{"content-type":"text/html; charset=utf-8"},"body":"<b>you</b>"}"#,
            ),
            (
                "json",
                "|\n{\"hello\": [\"{{ packet }}\", 1.5, null]}",
                r#"{"hello":["you",1.5,null]}"#,
            ),
            ("yaml", "|\nhello: ['{{ packet }}', 1.5, ~]", r#"{"hello":["you",1.5,null]}"#),
            ("cel", "\"{'hello': [packet]}\"", r#"{"hello":["you"]}"#),
            ("lua", "\"return {hello = packet}\"", r#"{"hello":"you"}"#),
            ("javascript", "\"return {hello: packet}\"", r#"{"hello":"you"}"#),
        ];
        let names: Vec<_> = LANGUAGES.iter().map(|language| language.name).collect();
        assert_eq!(names, codes.map(|(language, ..)| language));
        for (language, code, expected) in codes {
            let value = made(language, code, Value::text("you"));
            assert_eq!(value.to_json().expect("JSON").to_string(), expected, "{language}");
        }
    }

    #[test]
    fn a_tree_of_yaml_is_code_too() {
        for language in ["json", "yaml"] {
            let value = made(language, "{a: '{{ packet }}', b: [1, x]}", Value::Integer(7));
            let json = value.to_json().expect("JSON").to_string();
            assert_eq!(json, r#"{"a":7,"b":[1,"x"]}"#, "{language}");
        }
    }

    #[test]
    fn values_go_in_as_values() {
        let evil = Value::text("\"}, \"admin\": true, \"x\": {\"");
        for (language, code) in
            [("json", "|\n{\"name\": \"{{ packet }}\"}"), ("yaml", "|\nname: '{{ packet }}'")]
        {
            let value = made(language, code, evil.clone());
            assert_eq!(value, Value::map([("name", evil.clone())]), "{language}");
        }
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_stands() {
        let cases = [
            ("json", "|\n{\"a\": 1,\n \"b\": }", "}", "not JSON"),
            ("json", "|\n{\"a\": 1,\n \"b\": \"{{ packte }}\"}", "packte", "no variable"),
            ("yaml", "|\na: 1\nb: '{{ packte }}'", "packte", "no variable"),
            ("yaml", "|\na: 1\nb: [1", "", "not YAML"),
            ("cel", "1 + packte", "packte", "no variable"),
            ("text", "hello {{ 1 + packte }}", "packte", "no variable"),
            ("lua", "|\nlocal a = 1\nlocal b = = 2", "local b", "unexpected symbol"),
            ("javascript", "|\nlet a = 1\nlet b = = 2", "let b", "not JavaScript"),
        ];
        for (language, code, word, expected) in cases {
            let text = graph(language, code);
            let refusals = refusals(&text);
            assert_eq!(refusals.len(), 1, "{code}: {refusals:?}");
            assert!(refusals[0].message.contains(expected), "{code}: {refusals:?}");
            let start = refusals[0].span.expect("a place").start as usize;
            assert!(text[start..].starts_with(word), "{code}: points at {:?}", &text[start..]);
        }
    }

    #[test]
    fn a_script_that_fails_uses_the_error_port() {
        let text = "
            - kind: snippet
              name: a
              language: cel
              code: packet.b
              ports: {error: [{name: e, port: in}]}
            - {kind: snippet, name: e, language: cel, code: packet.node}
        ";
        assert_eq!(reply(text, Value::Null), Ok(Some(Value::text("a"))));
    }
}
