//! Text in a page: nothing in it is taken for markup.

use std::fmt;

/// Text that is written with markup characters escaped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// Returns the first fault in the tags of a page: a tag that is not closed, or closes another.
#[cfg(test)]
pub(super) fn unbalanced(page: &str) -> Option<String> {
    const VOID: [&str; 3] = ["meta", "br", "!doctype"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>')?;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '/']).next()?;
        if tag.starts_with('/') {
            match open.pop() {
                Some(opened) if opened == name => {}
                opened => return Some(format!("</{name}> closes {opened:?}")),
            }
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            if tag.matches('"').count() % 2 == 1 || tag.contains('<') {
                return Some(format!("<{tag}> is broken"));
            }
            open.push(name);
        }
    }
    (!open.is_empty()).then(|| format!("never closed: {open:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_for_markup() {
        let text = Escaped("<a href=\"x\">'1' & 2</a>").to_string();
        assert_eq!(
            text,
            "&lt;a href=&quot;x&quot;&gt;&#39;1&#39; &amp; 2&lt;/a&gt;"
        );
    }

    #[test]
    fn tags_are_balanced_or_not() {
        assert_eq!(
            unbalanced("<!doctype html><p class=\"a\">x<br>y</p><path/>"),
            None
        );
        for page in ["<p><b></p></b>", "<p>", "</p>", "<p class=\"a></p>"] {
            assert!(unbalanced(page).is_some(), "{page}");
        }
    }
}
