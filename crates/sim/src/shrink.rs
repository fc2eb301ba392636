//! Making a failing run simpler.

/// Looks for fewer and smaller decisions with which `fails` still holds, in at most `tries` tries.
/// It holds for the result.
pub(crate) fn shrink(
    decisions: Vec<u32>,
    mut tries: u64,
    mut fails: impl FnMut(&[u32]) -> bool,
) -> Vec<u32> {
    let mut best = decisions;
    let mut attempt = |best: &mut Vec<u32>, candidate: Vec<u32>| {
        if tries == 0 || candidate == *best {
            return false;
        }
        tries -= 1;
        let is_better = fails(&candidate);
        if is_better {
            *best = candidate;
        }
        is_better
    };
    loop {
        let before = best.clone();
        let mut keep = best.len() / 2;
        while keep < best.len() {
            let shorter = best[..keep].to_vec();
            if attempt(&mut best, shorter) {
                keep = best.len() / 2;
            } else {
                keep += (best.len() - keep).div_ceil(2);
            }
        }
        let mut size = (best.len() / 2).max(1);
        loop {
            let mut start = 0;
            while start < best.len() {
                let end = (start + size).min(best.len());
                let without = [&best[..start], &best[end..]].concat();
                let mut zeroed = best.clone();
                zeroed[start..end].fill(0);
                if !attempt(&mut best, without) {
                    let _ = attempt(&mut best, zeroed);
                    start = end;
                }
            }
            if size == 1 {
                break;
            }
            size = size.div_ceil(2);
        }
        // A decision that is left out at the end is not always zero: see `Source::Given`.
        let end = best.iter().rposition(|&it| it > 0).map_or(0, |at| at + 1);
        let trimmed = best[..end].to_vec();
        let _ = attempt(&mut best, trimmed);
        if best == before {
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let fails = |decisions: &[u32]| decisions.iter().filter(|&&it| it >= 3).count() >= 2;
        let decisions: Vec<_> = (0..200).map(|n| n % 7).collect();
        let shortest = shrink(decisions, 10_000, fails);
        assert_eq!(shortest.len(), 2, "{shortest:?}");
        assert!(fails(&shortest));
    }

    #[test]
    fn zeros_at_the_end_are_left_out_if_it_fails_without() {
        let fails = |decisions: &[u32]| decisions.len() >= 5;
        assert_eq!(shrink(vec![1; 20], 10_000, fails), [0; 5]);
    }

    #[test]
    fn the_tries_are_limited() {
        let mut tries = 0;
        let kept = shrink(vec![1; 1_000], 10, |_| {
            tries += 1;
            false
        });
        assert_eq!((tries, kept.len()), (10, 1_000));
    }
}
