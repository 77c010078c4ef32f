//! What scripts see, and what they cannot do.

mod like_lua;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sinew_flow::{Reply, Value};

use super::pattern::Matcher;
use super::*;
use crate::testing::{MalformedRequest, fixture, refusals, reply, run};

const LIMITS: Limits =
    Limits { time: Duration::from_secs(60), instructions_max: u64::MAX, memory_bytes: 1 << 26 };

/// A snippet that no node has, and that has no state yet.
fn snippet(code: &str) -> Snippet {
    let (idle, used, freed) = (RefCell::default(), Cell::default(), Notify::new());
    Snippet {
        code: code.to_owned(),
        limits: LIMITS,
        origin: ScriptLines::default(),
        idle,
        used,
        freed,
    }
}

/// A graph with so much time that other work on this machine does not matter.
fn graph(code: &str) -> String {
    let code = code.replace('\n', "\n            ");
    format!(
        "
        - kind: snippet
          name: a
          language: lua
          memory: 4MiB
          time: 10s
          code: |
            {code}
        "
    )
}

/// The same with more memory.
fn spacious(code: &str) -> String {
    graph(code).replace("memory: 4MiB", "memory: 128MiB")
}

fn answer(code: &str, packet: Value) -> Reply {
    reply(&graph(code), packet)
}

fn value(code: &str, packet: Value) -> Value {
    answer(code, packet).unwrap_or_else(|error| panic!("{code}: {error}")).expect("a value")
}

fn json(text: &str) -> Value {
    Value::from(serde_json::from_str::<serde_json::Value>(text).expect("JSON"))
}

#[test]
fn values_go_in_and_come_back() {
    let packet = json(r#"{"a": [1, 2.5, "x", null, true, []], "b": {}, "c": "é"}"#);
    let same = value("return packet", packet.clone());
    assert_eq!(same, packet);
    assert_eq!(value("return {}", Value::Null), json("{}"));
    assert_eq!(value("return json.list({})", Value::Null), json("[]"));
    assert_eq!(value("return {1, nil, 3}", Value::Null), json(r#"{"1": 1, "3": 3}"#));
    assert_eq!(value("return {b = 1, a = {2, 3}}", Value::Null), json(r#"{"b": 1, "a": [2, 3]}"#));
    assert_eq!(value("return '\\xff'", Value::Null), Value::Bytes(b"\xff"[..].into()));
    assert_eq!(value("local x = 1", Value::Null), Value::Null);
    assert_eq!(value("return json.encode({a = {1}})", Value::Null), Value::text(r#"{"a":[1]}"#));
    assert_eq!(value("return json.decode('[1, null]')[1]", Value::Null), Value::Integer(1));
    assert_eq!(
        value("return #env.PATH > 0 and env.SINEW_NO == nil", Value::Null),
        Value::Bool(true)
    );
}

#[test]
fn functions_that_expressions_have_are_there_too() {
    let table = [
        ("hash('sha1', 'abc')", r#""a9993e364706816aba3e25717850c26c9cd0d89d""#),
        ("base64.encode(base64.decode_url('-_8'))", r#""+/8=""#),
        ("time.format(1500 * 2, '%S', nil)", r#""03""#),
        ("time.duration('2s') / 2 + time.parse('1970-01-01T00:00:01Z')", "2000.0"),
        ("same_secret('a', 'a') and html_escape('<')", r#""&lt;""#),
        ("#uuid() + #uuid7() + random(3, 3)", "75"),
        ("now() > 1700000000000 and random() < 1", "true"),
        ("pcall(function() time.now = 1 end)", "false"),
    ];
    for (code, expected) in table {
        assert_eq!(value(&format!("return ({code})"), Value::Null), json(expected), "{code}");
    }
    for (code, expected) in [
        ("return hash('md5', '')", "hash: there is no algorithm 'md5'; there are sha256, sha384"),
        ("return hash('sha1')", "hash: it does not take 1 arguments but hash(algorithm, text)"),
    ] {
        let error = answer(code, Value::Null).expect_err(code);
        assert!(
            error.text().starts_with("lua: test.yaml:8: hash: ") && error.text().contains(expected),
            "{error}"
        );
    }
    // The call is charged by the length of the text: 3 million instructions are 9.6 million bytes.
    let code = "return #hash('sha256', string.rep('x', 12 * 1000 * 1000))";
    let error = reply(&spacious(code), Value::Null).expect_err("it takes too long");
    assert!(error.text().contains("one function of the library"), "{error}");
}

#[test]
fn a_global_that_nobody_sets_is_refused_at_its_place() {
    let refused = |code: &str| {
        let text = graph(code);
        let said = |it: Refusal| {
            let span = it.span.expect("a place");
            let (start, end) = (span.start as usize, (span.start + span.len) as usize);
            (it.message, text[start..end].to_owned(), it.help)
        };
        refusals(&text).into_iter().map(said).collect::<Vec<_>>()
    };
    let said = |name: &str, help: &str| {
        (format!("the global '{name}' is never set"), name.to_owned(), help.to_owned())
    };
    assert_eq!(
        refused("return {tostrng = pakcet.a,\n  b = tostrng(1)}"),
        [said("pakcet", "did you mean 'packet'?"), said("tostrng", "did you mean 'tostring'?"),]
    );
    let local = "write 'local debugging = ...' above it; also where it may be absent";
    assert_eq!(refused("if debugging then return 1 end"), [said("debugging", local)]);
    let console = "there is no console here; pass the packet through a node 'print'";
    assert_eq!(refused("local print2 = 1\nprint(print2)"), [said("print", console)]);
}

#[test]
fn an_error_names_the_line_of_the_spec() {
    let text = |text: &str| reply(text, Value::Null).expect_err(text).text().to_owned();
    // The first line of the code is line 8 of the spec.
    let said = text(&graph("local a = 1\nlocal f = function()\n  return a.b.c\nend\nreturn f()"));
    assert!(said.starts_with("lua: test.yaml:10: attempt to index"), "{said}");
    let said = text(&graph("local a = 1\nreturn json.decode('{')"));
    assert!(said.starts_with("lua: test.yaml:9: not JSON"), "{said}");
    let quoted = "\n- {kind: snippet, name: a, language: lua, code: \"local a\\nreturn a.b\"}\n";
    assert!(text(quoted).starts_with("lua: test.yaml:2: "), "{}", text(quoted));
    let caught = "local ok, why = pcall(function() return nil .. 1 end)\nerror(why)";
    let said = text(&graph(caught));
    assert!(said.starts_with("lua: test.yaml:9: test.yaml:8: attempt to concat"), "{said}");
}

#[test]
fn what_is_not_the_scripts_own_becomes_no_list() {
    for table in ["math", "string", "json", "env", "_ENV", "values"] {
        let error = answer(&format!("json.list({table})"), Value::Null).expect_err(table);
        assert!(error.text().contains("a table of your own"), "{table}: {error}");
    }
    assert_eq!(value("return json.list(json.list({1}))", Value::Null), json("[1]"));
}

#[test]
fn calls_back_within_each_other_need_no_stack_of_the_worker() {
    let code = |deepest: u32| {
        format!(
            "local function deep(n)\n\
             if n == {deepest} then return 'end' end\n\
             return (string.gsub('x', 'x', function() return deep(n + 1) end))\n\
             end\n\
             return deep(0)"
        )
    };
    assert_eq!(value(&code(1000), Value::Null), Value::text("end"));
    let error = answer(&code(u32::MAX), Value::Null).expect_err("too deep");
    assert!(error.text().contains("stack overflow") || error.text().contains("raise '"), "{error}");
}

#[test]
fn a_script_sees_and_sets_values_of_its_flow() {
    let text = "
        - kind: snippet
          name: a
          language: lua
          code: 'values.n = {packet}; return values.n[1] + 1'
          ports: {out: [{name: b, port: in}]}
        - kind: snippet
          name: b
          language: lua
          code: 'return {values.n[1], packet, flow.id > 0, values.no}'
    ";
    assert_eq!(reply(text, Value::Integer(1)), Ok(Some(json("[1, 2, true]"))));
}

#[test]
fn of_a_request_only_those_fields_are_made_that_the_code_asks_for() {
    let request = || Value::Document(Arc::new(MalformedRequest));
    assert_eq!(value("return packet.path .. packet.query.a", request()), Value::text("/x1"));
    assert_eq!(value("return packet.nothing", request()), Value::Null);
    for code in ["return packet.body", "for _ in pairs(packet) do end", "return packet"] {
        let error = answer(code, request()).expect_err(code);
        assert_eq!((error.status(), error.text()), (400, "the body is not JSON"), "{code}");
    }
    assert_eq!(
        value("return pcall(function() return packet.body end)", request()),
        Value::Bool(false)
    );
}

#[test]
fn an_error_says_what_whoever_asked_may_know() {
    let error = answer("error({status = 404, message = 'no such user'})", Value::Null).unwrap_err();
    assert_eq!((error.status(), error.shown()), (404, Some(&Value::text("no such user"))));
    let error = answer("\nerror('secret')", Value::Null).unwrap_err();
    assert_eq!((error.status(), error.shown()), (500, None));
    assert_eq!(error.text(), "lua: test.yaml:9: secret");
    let error = answer("return nil + 1", Value::Null).unwrap_err();
    assert!(error.text().contains("arithmetic on a nil value"), "{error}");
    let caught =
        value("local ok, e = pcall(error, {status = 1}) return {ok, e.status}", Value::Null);
    assert_eq!(caught, json("[false, 1]"));
}

#[test]
fn nothing_dangerous_is_there_and_nothing_stays_behind() {
    const ABSENT: &str = "\
        io os package debug coroutine load loadstring loadfile dofile require collectgarbage \
        setmetatable getmetatable rawset rawget _G string.dump string.pack table.move \
        math.randomseed print xpcall";
    for name in ABSENT.split(' ') {
        let code = format!("local all = _ENV return all.{name} == nil");
        assert_eq!(value(&code, Value::Null), Value::Bool(true), "{name}");
    }
    for code in ["string.rep = 1", "math.pi = 3", "env.PATH = 1", "json.x = 1", "('').x = 1"] {
        assert!(answer(code, Value::Null).is_err(), "{code}");
    }
    let fixture = fixture(&graph("n = (n or 0) + 1; string2 = 1; return n"));
    let open = || fixture.open("begin", 0, Value::Null, Duration::from_secs(20));
    run(async {
        for _ in 0..3 {
            assert_eq!(open().await, Ok(Some(Value::Integer(1))));
        }
    });
}

#[test]
fn what_never_ends_is_stopped_and_the_next_packet_answered() {
    let endless = [
        "while packet do end",
        "while packet do pcall(function() while true do end end) end",
        "local function f() return pcall(f) end while packet do f() end",
        "local function f() return f() end if packet then f() end",
        "local function f() return 1 + f() end if packet then f() end",
        "local s = 'x' while packet do s = s .. s end",
        "local t = {} while packet do t[#t + 1] = 'x' end",
        "local t = {} while packet do t = {t, t} end",
        "if packet then return ('x'):rep(1 << 40) end",
        "if packet then (''):rep(1 << 62) ; while true do end end",
        "if packet then return ('a'):rep(100000):find('.-.-.-.-b') end",
        "if packet then return ('a'):rep(100000):gsub('a*a*a*b', '') end",
        "if packet then for _ in ('a'):rep(100000):gmatch('.-.-.-b') do end end",
        "if packet then ('x'):gsub('x', function() while true do end end) end",
        "if packet then return ('x'):rep(1000000):gsub('x', ('y'):rep(1000000)) end",
        "local t = {} for i = 1, 60 do t = {t, t} end if packet then return t end",
        "local s, t = ('x'):rep(1000000), {} for i = 1, 1000 do t[i] = s end \
         if packet then return t end",
        "local t = {} t.t = t if packet then return t end",
        "if packet then table.sort({3, 2, 1}, function() while true do end end) end",
        "local t = {} for i = 1, 100000 do t[i] = i % 7 end \
         if packet then while true do table.sort(t) end end",
        "if packet then return table.concat({}, 'x', 1, 1 << 40) end",
        "if packet then return table.unpack({}, 1, 1 << 40) end",
        "if packet then return json.decode(('['):rep(100000)) end",
        "local t = {} for i = 1, 100000 do t[i] = ('x'):rep(i) end return packet",
    ];
    for code in endless {
        let fixture = fixture(&graph(code));
        let open = |packet| fixture.open("begin", 0, packet, Duration::from_secs(20));
        let (first, second) =
            run(async { (open(Value::Bool(true)).await, open(Value::Bool(false)).await) });
        let error = first.expect_err(code);
        assert_eq!((error.status(), error.shown()), (500, None), "{code}");
        if !code.ends_with("return packet") {
            assert!(second.is_ok(), "{code}: {second:?}");
        }
    }
}

#[test]
fn what_the_library_does_with_long_texts_and_lists_has_its_price() {
    let each = [
        "t:lower()",
        "t:upper()",
        "t:reverse()",
        "t:sub(2)",
        "t:byte(1, -999000)",
        "t:find('y', 1, true)",
        "('%s'):format(t)",
        "tonumber(t)",
        "utf8.len(t)",
        "utf8.offset(t, -1000000)",
        "utf8.codepoint(t, 1, 9)",
        "table.concat({t, t})",
        "table.insert(l, 1, 0)",
        "table.remove(l, 1)",
        "table.unpack(l, 1, 20000)",
        "json.encode(t)",
    ];
    for call in each {
        // Ten thousand calls: if only their instructions counted, they would be far from any limit.
        let code = format!(
            "local t, l = ('x'):rep(1000000), {{}}\n\
             for at = 1, 30000 do l[at] = at end\n\
             for _ = 1, 10000 do local _ = {call} end"
        );
        let error = reply(&spacious(&code), Value::Null).expect_err(call);
        assert!(error.text().contains("instructions_max"), "{call}: {error}");
    }
}

#[test]
fn limits_hold_inside_one_call_of_the_library() {
    // Each is one call, and none by itself needs much time or many instructions.
    let memory = [
        "return #json.decode('[' .. ('1,'):rep(1000000) .. '1]')",
        "return #json.decode('[' .. ('{},'):rep(300000) .. '1]')",
        "local t = {} for i = 1, 16 do t = {t, t} end return #json.encode(t)",
        "local s, t = ('x'):rep(100000), {} for i = 1, 60 do t[i] = s end return #json.encode(t)",
        "local t = {} for i = 1, 18 do t = {t, t} end return t",
        "return #('%q'):format(('\\13'):rep(700000))",
    ];
    for code in memory {
        let error = answer(code, Value::Null).expect_err(code);
        assert!(error.text().contains("4194304 bytes of memory"), "{code}: {error}");
    }
    let code = "local t = ('\\1'):rep(2 << 20) return #('%q'):format(t)";
    let error = reply(&spacious(code), Value::Null).expect_err("ten million signs to be quoted");
    assert!(error.text().contains("one function of the library"), "{error}");
    let code = "local l = json.decode('[' .. ('1,'):rep(2000000) .. '1]') return #l";
    let few = spacious(code).replace("time: 10s", "time: 10s\n          instructions_max: 1000000");
    let error = reply(&few, Value::Null).expect_err("two million values");
    assert!(error.text().contains("1000000 instructions"), "{error}");
}

#[test]
fn sorting_and_replacing_by_functions_of_the_script_is_as_lua_has_it() {
    let code = "
        local t, u = {}, {}
        for i = 1, 5000 do t[i] = (i * 7919) % 5003; u[i] = {t[i] // 10, i} end
        table.sort(t)
        table.sort(u, function(a, b) return a[1] > b[1] end)
        for i = 2, 5000 do
          assert(t[i - 1] < t[i] and u[i - 1][1] >= u[i][1])
        end
        table.sort(t, function(a, b) return a > b end)
        assert(t[1] == 5002 and #t == 5000)
        return {t[5000], pcall(table.sort, 1), pcall(table.sort, {1, 'x'})}";
    let sorted = reply(&spacious(code), Value::Null).expect("sorted").expect("a value");
    let Value::List(sorted) = sorted else { panic!("{sorted:?}") };
    assert_eq!((&sorted[0], &sorted[1]), (&Value::Integer(1), &Value::Bool(false)));
    for (call, expected) in [
        ("('hello world'):gsub('o', function(c) return c:upper() .. 1 end)", "hellO1 wO1rld 2"),
        ("('hello'):gsub('', function() return '-' end)", "-h-e-l-l-o- 6"),
        ("('abc'):gsub('%w', function(c) if c ~= 'b' then return false end return 5 end)", "a5c 3"),
        ("('a=1, b=2'):gsub('(%w)=(%w)', function(k, v) return v .. k end)", "1a, 2b 2"),
        ("('aaa'):gsub('^a', function() return 'b' end)", "baa 1"),
        ("('aaa'):gsub('a', function() return 'b' end, 2)", "bba 2"),
        ("('aaa'):gsub('a', function() return 'b' end, -1)", "aaa 0"),
        ("('abc'):gsub('()', function(at) return at end)", "1a2b3c4 4"),
        ("('x'):gsub('x*', function() return 'y' end)", "y 1"),
    ] {
        let code = format!("local text, count = {call} return text .. ' ' .. count");
        assert_eq!(value(&code, Value::Null), Value::text(expected), "{call}");
    }
    let error = answer("('x'):gsub('x', function() return {} end)", Value::Null).unwrap_err();
    assert!(error.text().contains("cannot put in a table"), "{error}");
}

#[test]
fn scripts_that_wait_for_their_turn_hold_no_more_than_so_many_states() {
    let code = "local n = packet for i = 1, 400000 do n = n + 1 end return {packet, n}";
    let snippet = snippet(code);
    let fixture = fixture(&graph("return packet"));
    let call = async |packet: i64| {
        let (flow, value) = (fixture.flow(), Value::Integer(packet));
        flow.in_time(pin!(snippet.call(&flow, &value))).await
    };
    let made = run(join_all((0..3 * STATES_MAX as i64).map(call)));
    for (packet, made) in made.into_iter().enumerate() {
        let packet = packet as i64;
        assert_eq!(made, Ok(Value::list([packet, packet + 400_000].map(Value::Integer))));
    }
    // Each state is kept for the next packet: so many were made, and had waited for their turn.
    assert_eq!(snippet.idle.borrow().len(), STATES_MAX);
}

#[test]
fn a_flow_that_has_done_its_work_makes_no_state() {
    let snippet = snippet("return packet");
    snippet.idle.borrow_mut().push(State::new("return packet", &LIMITS).expect("it compiles"));
    let fixture = fixture(&graph("return packet"));
    let flow = fixture.flow();
    flow.allow(0);
    let call = snippet.call(&flow, &Value::Null);
    let error = run(flow.in_time(pin!(call))).expect_err("nothing is left");
    assert!(error.text().contains("has used all the work"), "{error}");
    assert_eq!(snippet.idle.borrow().len(), 1, "the next packet finds it as it was");
}

#[test]
fn values_of_the_flow_have_their_price() {
    let code = "for i = 1, 100000 do values['k' .. i] = i end";
    let error = reply(&spacious(code), Value::Null).expect_err("too many");
    assert!(error.text().contains("instructions_max"), "{error}");
    let code = "for i = 1, 300 do values['k' .. i] = i end return values.k300";
    assert_eq!(value(code, Value::Null), Value::Integer(300));
}

#[test]
fn an_error_of_the_library_stands_where_the_script_called() {
    for (call, said) in [
        ("('%d'):format('x')", "format"),
        ("table.concat({{}})", "concat"),
        ("table.insert(nil, 1)", "insert"),
        ("('x'):lower().y.z", "index"),
        ("utf8.codepoint('x', 9)", "codepoint"),
    ] {
        let error = answer(&format!("local x = 1\n\nx = {call}"), Value::Null).expect_err(call);
        assert!(error.text().starts_with("lua: test.yaml:10: "), "{call}: {error}");
        assert!(error.text().contains(said), "{call}: {error}");
    }
}

#[test]
fn small_calls_of_the_library_cost_no_more_than_their_instructions() {
    let code = "
        local t, l, count = ('x'):rep(1000000), {}, 0
        for at = 1, 30000 do table.insert(l, at) end
        for at = 1, 30000 do
          if t:sub(at, at) == 'x' and t:byte(at) == 120 and utf8.offset(t, 2, at) then
            count = count + table.remove(l)
          end
        end
        return count";
    assert_eq!(reply(&spacious(code), Value::Null), Ok(Some(Value::Integer(30_000 * 30_001 / 2))));
}

#[test]
fn one_call_handles_texts_up_to_a_length() {
    let code = "return ('x'):rep(10 << 20):gsub('x', 'yyy')";
    let error = reply(&spacious(code), Value::Null).expect_err("too many matches at once");
    assert!(error.text().contains("took more than 3000000 instructions"), "{error}");
    for (call, fits) in [
        ("#t:lower()", true),
        ("#table.concat({t, t}, '', 1, 1)", true),
        ("#table.concat({t, t})", false),
        ("#('%s%s'):format(t, t)", false),
        ("#t:rep(2)", false),
        ("#t .. t", true),
    ] {
        let code = format!("local t = ('x'):rep(10 << 20)\nreturn {call}");
        let reply = reply(&spacious(&code), Value::Null);
        let is_so = match &reply {
            Ok(_) => fits,
            Err(error) => !fits && error.text().contains("16777216"),
        };
        assert!(is_so, "{call}: {:?}", reply.err());
    }
}

#[test]
fn who_searches_on_from_match_to_match_pays_for_the_text_once() {
    let code = "
        local t, from, count = ('x,'):rep(50000), 1, 0
        while true do
          local at = t:find(',', from, true)
          if not at then return count end
          from, count = at + 1, count + 1
        end";
    assert_eq!(reply(&spacious(code), Value::Null), Ok(Some(Value::Integer(50_000))));
}

#[test]
fn errors_of_limits_name_the_knob() {
    let brief = graph("while true do end").replace("time: 10s", "time: 5ms");
    let error = reply(&brief, Value::Null).unwrap_err();
    assert!(error.text().contains("longer than 5ms and was stopped; raise 'time'"), "{error}");
    let error = answer("local t = {} while true do t[#t + 1] = {} end", Value::Null).unwrap_err();
    assert!(error.text().contains("raise 'memory'"), "{error}");
    let few = graph("for i = 1, 1e6 do end").replace("memory: 4MiB", "instructions_max: 1000");
    let error = reply(&few, Value::Null).unwrap_err();
    assert!(error.text().contains("more than 1000 instructions"), "{error}");
}

#[test]
fn a_pattern_of_nothing_but_signs_does_not_panic() {
    let budget = Budget::new(&LIMITS);
    for pattern in
        ["%", "[", "[^", "[]", "[^]", "[%", "[a-", "[a-]", "%b", "%bx", "%f", "%f[", "(", ")", "%9"]
    {
        let mut matcher = Matcher::new(b"a]-%", pattern.as_bytes(), &budget);
        if let Ok(Some(end)) = matcher.matches(0) {
            let _ = matcher.capture(0, 0, end);
        }
    }
}
