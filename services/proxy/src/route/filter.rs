//! Ids of filters that carry the endpoint that made them: `0x`, eight digits for the endpoint, the original.

/// `result` (a JSON string such as `"0x1a"`) as the client gets it; `None` when it is no such id.
pub(crate) fn mark(result: &[u8], tag: &[u8; 8]) -> Option<Vec<u8>> {
    let digits = result.strip_prefix(br#""0x"#)?;
    let mut marked = Vec::with_capacity(result.len() + tag.len());
    marked.extend_from_slice(br#""0x"#);
    marked.extend_from_slice(tag);
    marked.extend_from_slice(digits);
    Some(marked)
}

/// The endpoint's digits and the parameters to send there, read from a client's `params` such as `["0x…1a"]`.
pub(crate) fn unmark(params: &[u8]) -> Option<([u8; 8], Vec<u8>)> {
    let params: Vec<String> = serde_json::from_slice(params).ok()?;
    let [id] = &params[..] else { return None };
    let (tag, original) = id.strip_prefix("0x")?.split_at_checked(8)?;
    let tag: [u8; 8] = tag.as_bytes().try_into().ok()?;
    let sent = serde_json::json!([format!("0x{original}")]);
    Some((tag, sent.to_string().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_id_leads_back_to_its_endpoint_and_its_original() {
        let tag = *b"0123abcd";
        let marked = mark(br#""0x1a""#, &tag).expect("an id");
        let params = [b"[", &marked[..], b"]"].concat();
        let (found, sent) = unmark(&params).expect("a marked id");
        assert_eq!((found, sent.as_slice()), (tag, &br#"["0x1a"]"#[..]));
    }

    #[test]
    fn what_is_no_id_of_ours_is_left_alone() {
        assert_eq!(mark(b"null", &[b'0'; 8]), None);
        for params in ["[]", "null", r#"["0x1"]"#, r#"[1]"#, r#"["0x12345678","x"]"#, r#"["zz12345678aa"]"#] {
            assert_eq!(unmark(params.as_bytes()), None, "{params}");
        }
    }
}
