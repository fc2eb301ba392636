//! Charts as PNG without the system's fonts: shapes go to a bitmap, and text is set in built-in
//! letters.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use plotters::backend::BitMapBackend;
use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};
use std::io::Write;
use std::path::Path;

/// Text has a single size.
const HEIGHT: RasterHeight = RasterHeight::Size16;
const WEIGHT: FontWeight = FontWeight::Regular;

/// A bitmap with letters of its own.
pub(super) struct Raster<'a>(pub(super) BitMapBackend<'a>);

impl DrawingBackend for Raster<'_> {
    type ErrorType = <BitMapBackend<'static> as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }

    fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        self.0.ensure_prepared()
    }

    fn present(&mut self) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        self.0.present()
    }

    fn draw_pixel(
        &mut self,
        point: BackendCoord,
        color: BackendColor,
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        self.0.draw_pixel(point, color)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        self.0.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        self.0.draw_rect(upper_left, bottom_right, style, fill)
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Result<(), DrawingErrorKind<Self::ErrorType>> {
        debug_assert!(
            matches!(style.transform(), FontTransform::None),
            "text is never turned"
        );
        let (width, height) = self.estimate_text_size(text, style)?;
        let (width, height) = (length(width), length(height));
        let anchor = style.anchor();
        let left = match anchor.h_pos {
            HPos::Left => x,
            HPos::Center => x - width / 2,
            HPos::Right => x - width,
        };
        let top = match anchor.v_pos {
            VPos::Top => y,
            VPos::Center => y - height / 2,
            VPos::Bottom => y - height,
        };
        let color = style.color();
        for (nth, c) in (0..).zip(text.chars()) {
            let start = left + nth * length(letter_width());
            let letter =
                get_raster(plain(c), WEIGHT, HEIGHT).or_else(|| get_raster('?', WEIGHT, HEIGHT));
            let Some(letter) = letter else { continue };
            for (down, line) in (0..).zip(letter.rows()) {
                for (right, &ink) in (0..).zip(line.iter()).filter(|(_, ink)| **ink > 0) {
                    let alpha = color.alpha * f64::from(ink) / 255.0;
                    self.0
                        .draw_pixel((start + right, top + down), BackendColor { alpha, ..color })?;
                }
            }
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        _: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Self::ErrorType>> {
        let letters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        Ok((
            letters.saturating_mul(letter_width()),
            u32::try_from(HEIGHT.val()).unwrap_or(16),
        ))
    }
}

/// Writes a picture of three bytes a pixel as PNG.
pub(super) fn png(path: &Path, pixels: &[u8], (width, height): (u32, u32)) -> Result<(), String> {
    crate::driver::outputs::write(path, |out: &mut dyn Write| {
        let mut encoder = png::Encoder::new(out, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(std::io::Error::other)?;
        writer
            .write_image_data(pixels)
            .map_err(std::io::Error::other)?;
        writer.finish().map_err(std::io::Error::other)
    })
}

/// Returns a built-in letter that looks like `c`.
fn plain(c: char) -> char {
    match c {
        '×' => 'x',
        '–' => '-',
        'µ' => 'u',
        c => c,
    }
}

fn letter_width() -> u32 {
    u32::try_from(get_raster_width(WEIGHT, HEIGHT)).unwrap_or(8)
}

/// Sizes of text are small.
fn length(pixels: u32) -> i32 {
    i32::try_from(pixels).unwrap_or(i32::MAX)
}
