//! The messages of a plan as a header for C and C++: structs with the same layout in memory as
//! ours, the words of their enums, and what a kind in C declares about its ports.

use std::collections::BTreeMap;
use std::fmt::Write;

use sinew_plan::catalogue::{Field, MessageType, Scalar};
use sinew_plan::plan::Plan;

use crate::messages::is_reserved;

/// The most fields that the record of a port in C has room for, and the most bytes of a name with
/// its final zero: `guest/rtos/include/sinew_guest.h`.
const PORT_FIELDS_MAX: usize = 20;
const PORT_NAME_MAX: usize = 32;

const HEAD: &str = r#"/* Messages of graph 'GRAPH' as they lie in memory, by 'sinew graph FILE --c'.
 * MESSAGE_PORT is what the record of a kind in C says of a port, with sinew_guest.h:
 * { SINEW_KIND, .ports = { { .name = "in", MESSAGE_PORT } } } */
#ifndef GUARD
#define GUARD

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define SINEW_HOLDS(what) static_assert(what, "as Sinew lays it out")
#else
#define SINEW_HOLDS(what) _Static_assert(what, "as Sinew lays it out")
#endif
"#;

/// The messages of the plan's links, by name, in a form that C11 and C++11 accept.
pub fn c_header(plan: &Plan) -> String {
    let guard = format!("SINEW_{}_H", upper(&plan.name));
    let mut text = HEAD.replace("GRAPH", &plan.name).replace("GUARD", &guard);
    for (name, ty) in messages(plan) {
        message(&mut text, &name, ty);
    }
    text + "\n#undef SINEW_HOLDS\n#endif\n"
}

/// Each message once; of two with the same name the later one has its hash in the name.
fn messages(plan: &Plan) -> BTreeMap<String, &'static MessageType> {
    let mut all = BTreeMap::<String, &'static MessageType>::new();
    let ends = plan.links.iter().flat_map(|link| [link.from, link.to]);
    let types = ends.map(|end| plan.port(end).message).filter(|ty| !ty.fields.is_empty());
    for ty in types {
        match all.get(ty.name).is_some_and(|other| other.hash != ty.hash) {
            true => all.insert(format!("{}_{:08x}", ty.name, ty.hash), ty),
            false => all.insert(ty.name.to_owned(), ty),
        };
    }
    all
}

fn message(text: &mut String, name: &str, ty: &MessageType) {
    text.push('\n');
    for field in ty.fields.iter().filter(|field| !field.labels.is_empty()) {
        labels(text, name, field);
    }
    line(text, &format!("struct {} {{", ident(name)));
    for field in ty.fields {
        let array = if field.count > 1 { format!("[{}]", field.count) } else { String::new() };
        let note = match field.scalar {
            Scalar::Bool => " /* 0: false */".to_owned(),
            _ if !field.labels.is_empty() => format!(" /* enum {} */", enum_name(name, field)),
            _ => String::new(),
        };
        let ty = c_type(field.scalar);
        line(text, &format!("    {ty} {}{array};{note}", ident(field.name)));
    }
    line(text, "};");
    line(text, &format!("SINEW_HOLDS(sizeof(struct {}) == {});", ident(name), ty.size));
    for field in ty.fields {
        let (of, field, at) = (ident(name), ident(field.name), field.offset);
        line(text, &format!("SINEW_HOLDS(offsetof(struct {of}, {field}) == {at});"));
    }
    port(text, name, ty);
}

/// The values of an enum, which the field holds as a byte.
fn labels(text: &mut String, name: &str, field: &Field) {
    line(text, &format!("enum {} {{", enum_name(name, field)));
    for (number, word) in field.labels.iter().enumerate().filter(|(_, word)| !word.is_empty()) {
        let constant = format!("{}_{}_{}", upper(name), upper(field.name), upper(word));
        line(text, &format!("    {constant} = {number},"));
    }
    line(text, "};\n");
}

/// What the record of a kind in C declares about a port with this message.
fn port(text: &mut String, name: &str, ty: &MessageType) {
    let is_short = |name: &str| name.len() < PORT_NAME_MAX;
    let fits = ty.fields.len() <= PORT_FIELDS_MAX
        && is_short(ty.name)
        && ty.fields.iter().all(|field| is_short(field.name));
    if !fits {
        let why = "too long for a port of a kind in C: sinew_guest.h";
        return line(text, &format!("/* {name} is {why} */"));
    }
    line(text, &format!("#define {}_PORT \\", upper(name)));
    let (size, align, count) = (ty.size, ty.align, ty.fields.len());
    let head = format!("    .message = \"{}\", .size = {size}, .align = {align}, \\", ty.name);
    line(text, &head);
    line(text, &format!("    .hash = {:#010x}, .field_count = {count}, .fields = {{ \\", ty.hash));
    for field in ty.fields {
        let scalar = format!("{:?}", field.scalar).to_ascii_uppercase();
        let Field { name, count, offset, .. } = field;
        line(text, &format!("        {{ \"{name}\", SINEW_{scalar}, {count}, {offset} }}, \\"));
    }
    line(text, "    }");
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a string takes all");
}

fn enum_name(name: &str, field: &Field) -> String {
    format!("{name}_{}", field.name)
}

/// The name, changed if C reserves it.
fn ident(name: &str) -> String {
    if is_reserved(name) { format!("{name}_") } else { name.to_owned() }
}

/// `JointTargets` and `joint-targets` as `JOINT_TARGETS`.
fn upper(name: &str) -> String {
    let mut text = String::new();
    let mut before = '_';
    for sign in name.chars() {
        if sign.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            text.push('_');
        }
        text.push(if sign.is_ascii_alphanumeric() { sign.to_ascii_uppercase() } else { '_' });
        before = sign;
    }
    text
}

fn c_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::U8 | Scalar::Bool => "uint8_t",
        Scalar::I8 => "int8_t",
        Scalar::U16 => "uint16_t",
        Scalar::I16 => "int16_t",
        Scalar::U32 => "uint32_t",
        Scalar::I32 => "int32_t",
        Scalar::U64 => "uint64_t",
        Scalar::I64 => "int64_t",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
    }
}
