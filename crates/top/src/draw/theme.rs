//! Colours, and the styles in their place for terminals and people without colours.

use ratatui::style::{Color, Modifier, Style};

/// The styles of the screen. Without colours, modifiers or the text itself tell them apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    has_colours: bool,
}

impl Theme {
    /// Creates a theme without colours where the variable `NO_COLOR` has a value: see
    /// <https://no-color.org>.
    pub(crate) fn of_environment() -> Self {
        let no_colour = std::env::var_os("NO_COLOR");
        Self::new(no_colour.is_none_or(|it| it.is_empty()))
    }

    pub(crate) fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    fn with(self, colour: Color, otherwise: Modifier) -> Style {
        match self.has_colours {
            true => Style::new().fg(colour),
            false => Style::new().add_modifier(otherwise),
        }
    }

    /// Returns the style of an important number.
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Returns the style of ended processes, and of explanations.
    pub(crate) fn dim(self) -> Style {
        self.with(Color::DarkGray, Modifier::DIM)
    }

    pub(crate) fn good(self) -> Style {
        self.with(Color::Green, Modifier::empty())
    }

    pub(crate) fn warning(self) -> Style {
        self.with(Color::Yellow, Modifier::BOLD)
    }

    pub(crate) fn bad(self) -> Style {
        let style = self.with(Color::Red, Modifier::BOLD);
        style.add_modifier(Modifier::BOLD)
    }

    pub(crate) fn header(self) -> Style {
        self.with(Color::Cyan, Modifier::UNDERLINED)
    }

    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
