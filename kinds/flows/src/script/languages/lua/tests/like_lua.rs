//! Our library compared with Lua's own.

use super::*;

/// Lua's own library and ours give the same, for texts and patterns made at random.
#[test]
fn patterns_mean_what_they_mean_in_lua() {
    let lua = Lua::new();
    let ours = Lua::new();
    let budget = Rc::new(Budget::new(&LIMITS));
    let (run, _, _) = library::install(&ours, &budget).expect("the library");
    let code = "local _ENV, _, values = ... local s, p = values.s, values.p
        local function all(...) local t = table.pack(...)
          for i = 1, t.n do t[i] = tostring(t[i]) end return table.concat(t, ',') end
        local function show(fine, ...) return fine and all(...) or 'error' end
        local out = {show(pcall(string.find, s, p)), show(pcall(string.match, s, p, 2)),
          show(pcall(string.gsub, s, p, '<%0>')), show(pcall(string.gsub, s, p, {a = 'b'}, 1))}
        out[#out + 1] = show(pcall(function() local found = {}
          for _, from in ipairs({1, 3, -2, 0, 99, -99, math.mininteger}) do
            for a, b in s:gmatch(p, from) do found[#found + 1] = all(a, b) end
          end
          return table.concat(found, ';') end))
        return table.concat(out, '|')";
    let theirs: Function = lua.load(code).into_function().expect("code");
    let body: Function = ours.load(code).into_function().expect("code");
    let values =
        |lua: &Lua, s: &str, p: &str| lua.create_table_from([("s", s), ("p", p)]).expect("a table");
    let mut random = fastrand::Rng::with_seed(1);
    let mut next = |signs: &[&str], most: usize| -> String {
        (0..random.usize(0..=most)).map(|_| signs[random.usize(..signs.len())]).collect()
    };
    let signs = [
        "a", "b", "1", " ", ".", "%a", "%d", "%s", "%w", "[ab]", "[^a]", "[a-c1]", "*", "+", "-",
        "?", "(", ")", "()", "^", "$", "%b()", "%f[%w]", "%1", "%", "[", "]", "%%", "%S",
    ];
    for _ in 0..3000 {
        let (s, p) = (next(&["a", "b", "c", "1", " ", "(", ")", "x", "%"], 12), next(&signs, 6));
        let env = lua.globals();
        let expected: String =
            theirs.call((env, LuaValue::Nil, values(&lua, &s, &p))).expect("Lua's");
        budget.begin();
        let (fine, found): (bool, LuaValue) =
            run.call((&body, LuaValue::Nil, values(&ours, &s, &p), LuaValue::Nil)).expect("ours");
        assert!(fine, "{s:?} {p:?}: {found:?}");
        assert_eq!(found.to_string().expect("a text"), expected, "text {s:?}, pattern {p:?}");
    }
}

/// What the manual of Lua 5.4 has in `math`, but for `randomseed`.
const MATH: &str = "abs acos asin atan ceil cos deg exp floor fmod huge log max maxinteger min \
                    mininteger modf pi rad random sin sqrt tan tointeger type ult";

#[test]
fn math_is_as_lua_has_it() {
    let lua = Lua::new();
    for name in MATH.split(' ').filter(|name| *name != "random") {
        let code = format!(
            "local it = math.{name}
            if type(it) ~= 'function' then return tostring(it) end
            local all = {{}}
            for _, x in ipairs({{0, 1, -0.5, 3}}) do
              local fine, got = pcall(it, x, 2)
              all[#all + 1] = tostring(fine and got)
            end
            return table.concat(all, ' ')"
        );
        let theirs: String = lua.load(&code).eval().expect("Lua's");
        assert_eq!(value(&code, Value::Null), Value::text(theirs), "{name}");
    }
    assert_eq!(value("return math.random(1)", Value::Null), Value::Integer(1));
}
