//! A list in columns, with a selected row.

use super::theme::Theme;
use crate::text;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

/// The width from which a screen is wide.
const WIDE: u16 = 120;

/// A column. Where the screen is narrow, columns with the highest rank are left out first;
/// columns with rank 0 stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    title: &'static str,
    /// The least width.
    width: u16,
    /// The width on a wide screen.
    wide: u16,
    /// Whether the column takes the rest of the width.
    fills: bool,
    is_right: bool,
    rank: u8,
    /// Whether the end of a long text matters more than its begin.
    keeps_end: bool,
}

/// A text of a list, without control characters.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

/// A list.
pub(super) struct Grid<'a> {
    pub(super) columns: &'a [Column],
    /// The column with the order, and whether the most come first.
    pub(super) sorted: Option<(usize, bool)>,
    pub(super) count: usize,
    pub(super) selected: Option<usize>,
    pub(super) offset: usize,
    pub(super) row: &'a dyn Fn(usize) -> Vec<Cell>,
}

impl Column {
    pub(super) const fn left(title: &'static str, width: u16) -> Self {
        Self {
            title,
            width,
            wide: width,
            fills: false,
            is_right: false,
            rank: 0,
            keeps_end: false,
        }
    }

    pub(super) const fn right(title: &'static str, width: u16) -> Self {
        Self {
            is_right: true,
            ..Self::left(title, width)
        }
    }

    pub(super) const fn fill(title: &'static str, width: u16) -> Self {
        Self {
            fills: true,
            ..Self::left(title, width)
        }
    }

    pub(super) const fn wide(self, wide: u16) -> Self {
        Self { wide, ..self }
    }

    pub(super) const fn end(self) -> Self {
        Self {
            keeps_end: true,
            ..self
        }
    }

    pub(super) const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

impl Cell {
    pub(super) fn new(text: impl AsRef<str>, style: Style) -> Self {
        let text = text::clean(text.as_ref()).into_owned();
        Self { text, style }
    }

    pub(super) fn plain(text: impl AsRef<str>) -> Self {
        Self::new(text, Style::new())
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Shows a number, or a dash where it is not known.
    pub(super) fn or_dash(text: Option<String>) -> Self {
        Self::plain(text.as_deref().unwrap_or("-"))
    }
}

impl Grid<'_> {
    /// Draws the titles in the first line, and the rows below.
    pub(super) fn draw(&self, area: Rect, theme: Theme, buffer: &mut Buffer) {
        if area.height == 0 {
            return;
        }
        let places = places(self.columns, area);
        buffer.set_style(Rect { height: 1, ..area }, theme.header());
        for (place, x, width) in &places {
            let column = self.columns[*place];
            let mark = match self.sorted {
                Some((sorted, is_descending)) if sorted == *place => match is_descending {
                    true => "▼",
                    false => "▲",
                },
                _ => "",
            };
            let title = format!("{}{mark}", column.title);
            let title = Cell::plain(title);
            put(
                buffer,
                (*x, area.y),
                *width,
                &title,
                &Column {
                    keeps_end: false,
                    ..column
                },
            );
        }
        let rows = usize::from(area.height - 1).min(self.count.saturating_sub(self.offset));
        for (line, row) in (self.offset..self.offset + rows).enumerate() {
            let y = area.y + 1 + u16::try_from(line).unwrap_or(u16::MAX);
            let cells = (self.row)(row);
            for (place, x, width) in &places {
                if let Some(cell) = cells.get(*place) {
                    put(buffer, (*x, y), *width, cell, &self.columns[*place]);
                }
            }
            if self.selected == Some(row) {
                let line = Rect {
                    y,
                    height: 1,
                    ..area
                };
                buffer.set_style(line, theme.selected());
            }
        }
    }
}

/// Returns the columns with room, each with its place and width.
fn places(columns: &[Column], area: Rect) -> Vec<(usize, u16, u16)> {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let width = |column: &Column| match area.width {
        WIDE.. => column.wide,
        _ => column.width,
    };
    let needed = |kept: &[usize]| {
        let widths: u16 = kept.iter().map(|it| width(&columns[*it]) + 1).sum();
        widths.saturating_sub(1)
    };
    while needed(&kept) > area.width {
        let ranks = kept.iter().map(|it| columns[*it].rank);
        let Some(highest) = ranks.max().filter(|it| *it > 0) else {
            break;
        };
        kept.retain(|it| columns[*it].rank != highest);
    }
    let fills = kept.iter().filter(|it| columns[**it].fills).count();
    let fills = u16::try_from(fills).unwrap_or(1).max(1);
    let more = area.width.saturating_sub(needed(&kept)) / fills;
    let mut x = area.x;
    let mut places = Vec::new();
    for place in kept {
        let column = columns[place];
        let width = width(&column) + if column.fills { more } else { 0 };
        let width = width.min(area.right().saturating_sub(x));
        if width > 0 {
            places.push((place, x, width));
        }
        x = x.saturating_add(width + 1);
    }
    places
}

/// Writes a text into a place, and cuts off the rest.
fn put(buffer: &mut Buffer, (x, y): (u16, u16), width: u16, cell: &Cell, column: &Column) {
    let (text, style) = (cell.text.as_str(), cell.style);
    let length = Span::raw(text).width();
    let room = usize::from(width);
    if length > room && column.keeps_end {
        let cut = text.char_indices().rev().map(|it| it.0);
        let kept = cut
            .take_while(|at| Span::raw(&text[*at..]).width() < room)
            .last();
        let (end, _) = buffer.set_stringn(x, y, "…", room, style);
        buffer.set_stringn(end, y, &text[kept.unwrap_or(text.len())..], room - 1, style);
    } else if length > room {
        let (end, _) = buffer.set_stringn(x, y, text, room - 1, style);
        buffer.set_stringn(end, y, "…", 1, style);
    } else {
        let space = u16::try_from(room - length).unwrap_or(0);
        let x = if column.is_right { x + space } else { x };
        buffer.set_stringn(x, y, text, room, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::left("PID", 4),
        Column::fill("NAME", 6),
        Column::right("MORE", 5).rank(1),
        Column::right("AGE", 4),
    ];

    fn drawn(width: u16, selected: Option<usize>) -> Vec<String> {
        let area = Rect::new(0, 0, width, 3);
        let mut buffer = Buffer::empty(area);
        let row = |row: usize| {
            ["123456", "a東京b\x1b", "7", "9"]
                .map(|it| Cell::plain(it.replace('7', &row.to_string())))
                .to_vec()
        };
        let grid = Grid {
            columns: &COLUMNS,
            sorted: Some((3, true)),
            count: 4,
            selected,
            offset: 1,
            row: &row,
        };
        grid.draw(area, Theme::new(false), &mut buffer);
        let line = |y| {
            (0..width)
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
        };
        (0..3).map(line).collect()
    }

    #[test]
    fn columns_share_the_width_and_texts_are_cut() {
        let lines = drawn(24, None);
        assert_eq!(lines[0], "PID  NAME      MORE AGE▼");
        assert_eq!(
            lines[1].replace("  b", "b"),
            "123… a東 京 b\u{fffd}      1    9"
        );
        assert!(lines[2].ends_with("2    9"), "{lines:?}");
    }

    #[test]
    fn a_long_number_keeps_its_end() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        let column = Column::left("PID", 6).end();
        put(&mut buffer, (0, 0), 6, &Cell::plain("12345678"), &column);
        put(&mut buffer, (7, 0), 1, &Cell::plain("12"), &column);
        let line: String = (0..8).map(|x| buffer[(x, 0)].symbol()).collect();
        assert_eq!(line, "…45678 …");
    }

    #[test]
    fn a_narrow_screen_has_fewer_columns() {
        let lines = drawn(17, Some(2));
        assert_eq!(lines[0], "PID  NAME    AGE▼");
        assert!(lines.iter().all(|line| !line.contains("MORE")));
        // Narrower than the columns of rank 0.
        for width in 0..12 {
            drawn(width, Some(1));
        }
    }
}
