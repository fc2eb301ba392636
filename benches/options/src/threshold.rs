//! How much worse than a baseline is worse.

use std::str::FromStr;

/// How much worse is worse, as a part of the earlier figure; said in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold(f64);

impl Threshold {
    /// As a part of the earlier figure.
    #[must_use]
    pub fn part(self) -> f64 {
        self.0
    }
}

impl FromStr for Threshold {
    type Err = &'static str;

    fn from_str(percent: &str) -> Result<Self, Self::Err> {
        match percent.trim_end_matches('%').parse::<f64>() {
            Ok(percent) if (0.0..=1_000.0).contains(&percent) => Ok(Self(percent / 100.0)),
            _ => Err("a number of percent from 0 to 1000 is needed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_percent() {
        assert_eq!("7.5%".parse(), Ok(Threshold(0.075)));
        for wrong in ["", "-1", "NaN", "lots"] {
            assert!(wrong.parse::<Threshold>().is_err(), "{wrong}");
        }
    }
}
