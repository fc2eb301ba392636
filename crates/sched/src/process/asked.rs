//! The commands of yields, with their times, for readers of a waiting process.

#[cfg(feature = "observe")]
pub(crate) use self::seen::Asked;
#[cfg(not(feature = "observe"))]
pub(crate) use self::unseen::Asked;

#[cfg(feature = "observe")]
mod seen {
    use ganger_proc_api::CommandId;

    /// A unit is 2 to the power of this in nanoseconds: about a millisecond.
    const UNIT: u32 = 20;

    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct Asked {
        /// The number of the command; 0 where the answer is there, and only the step is missing.
        command: u16,
        /// In units since the scheduler was built, modulo 2^32.
        at: u32,
    }

    #[expect(clippy::cast_possible_truncation, reason = "it is meant modulo 2^32")]
    #[inline(always)]
    fn units(nanos: u64) -> u32 {
        (nanos >> UNIT) as u32
    }

    impl Asked {
        /// Notes this command, as asked for at this moment.
        #[inline(always)]
        pub(crate) fn new(command: CommandId, nanos: impl Fn() -> u64) -> Self {
            Self {
                command: command.get(),
                at: units(nanos()),
            }
        }

        /// Returns the command, unless it has been answered.
        pub(crate) fn command(self) -> Option<CommandId> {
            (self.command > 0).then(|| CommandId::new(self.command))
        }

        /// Returns how many nanoseconds ago the command was asked for. Exact to about two
        /// milliseconds, up to 26 days.
        pub(crate) fn before(self, nanos: u64) -> u64 {
            let before = units(nanos).wrapping_sub(self.at);
            // The command may have been asked for after the caller has read the clock.
            let before = if before > u32::MAX / 2 { 0 } else { before };
            u64::from(before) << UNIT
        }
    }

    #[cfg(all(test, not(ganger_loom)))]
    mod tests {
        use super::*;

        #[test]
        fn time_goes_on_where_the_count_begins_again() {
            let unit = 1_u64 << UNIT;
            for at in [0, 6 * unit, (1 << 32) * unit - 2 * unit] {
                let asked = Asked::new(CommandId::new(7), || at);
                assert_eq!(asked.before(at + 1_000 * unit), 1_000 * unit);
                assert_eq!(asked.before(at.saturating_sub(unit)), 0);
                assert_eq!(asked.command(), Some(CommandId::new(7)));
            }
            assert_eq!(Asked::default().command(), None);
        }
    }
}

#[cfg(not(feature = "observe"))]
mod unseen {
    use ganger_proc_api::CommandId;

    /// Of no size: no reader exists.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct Asked(());

    impl Asked {
        #[inline(always)]
        pub(crate) fn new(_: CommandId, _: impl Fn() -> u64) -> Self {
            Self(())
        }
    }
}
