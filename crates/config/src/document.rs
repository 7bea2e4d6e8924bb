//! Files that may be JSON or YAML. Decides by the file's name which of them it is, and hands on JSON; never what it
//! means.

use std::io;
use std::path::Path;

use crate::json::Node;
use crate::load::read_file;

/// Reads a file as JSON text; one whose name ends in `.yaml` or `.yml` is translated, members in its order,
/// duplicates kept.
///
/// # Errors
/// The file cannot be read; for YAML also that it is none, with the place.
pub fn read_document(path: &Path) -> io::Result<String> {
    let text = read_file(path)?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "yaml" | "yml" => translated(&text).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why)),
        _ => Ok(text),
    }
}

fn translated(text: &str) -> Result<String, String> {
    let node: Node = yaml_serde::from_str(text).map_err(|error| format!("not YAML: {error}"))?;
    let mut json = String::new();
    write(&node, &mut json)?;
    Ok(json)
}

fn write(node: &Node, out: &mut String) -> Result<(), String> {
    match node {
        Node::Null => out.push_str("null"),
        Node::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Node::Integer(number) => out.push_str(&number.to_string()),
        Node::Float(number) if number.is_finite() => out.push_str(&format!("{number:?}")),
        Node::Float(number) => return Err(format!("{number} is no number that JSON has")),
        Node::Text(text) => out.push_str(&serde_json::Value::from(text.as_str()).to_string()),
        Node::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(item, out)?;
            }
            out.push(']');
        }
        Node::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&serde_json::Value::from(name.as_str()).to_string());
                out.push(':');
                write(value, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: YAML whose duplicates vanish before they can be named, numbers that become texts.
    #[test]
    fn yaml_becomes_the_same_json() {
        let yaml = "a: 1\nb:\n  - x\n  - 2.5\n  - null\n  - true\n\"q\\\"\": \"1\"\na: {}\n";
        assert_eq!(translated(yaml), Ok(r#"{"a":1,"b":["x",2.5,null,true],"q\"":"1","a":{}}"#.to_owned()));
        assert!(translated("a: [1").expect_err("no YAML").starts_with("not YAML: "));
        assert!(translated("a: .inf").is_err());
    }
}
