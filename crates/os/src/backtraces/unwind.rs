//! Unwinds a copy of a stack into the addresses of its frames.
//!
//! The modules' unwind tables are copied while the dynamic linker holds them: a library may be
//! unloaded at any time afterwards. A large program has some megabytes of tables, which take about
//! a millisecond: for a report written at most once for each method and interval, and once for a
//! profile.

use super::sample::{Copied, Registers};
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative,
    Unwinder, UnwinderNative,
};
use std::ffi::c_void;
use std::ops::Range;
use std::slice;

/// The highest number of frames in a backtrace.
const MOST: usize = 128;

/// The encoding in `.eh_frame_hdr` of the address of `.eh_frame`: four bytes, relative to itself.
const RELATIVE_4_BYTES: u8 = 0x1b;

/// The unwind tables, as they were at a moment.
pub(super) struct Tables {
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl Tables {
    /// Copies the tables of all modules.
    pub(super) fn copy() -> Self {
        let mut unwinder = UnwinderNative::new();
        for module in modules() {
            unwinder.add_module(module);
        }
        let cache = CacheNative::new();
        Self { unwinder, cache }
    }

    /// Returns the instruction addresses of the frames, the innermost first. For a frame that has
    /// called, this is the address of the call.
    pub(super) fn frames(&mut self, copied: &Copied) -> Vec<u64> {
        let Registers { ip, sp, .. } = copied.registers;
        let mut read = |address: u64| {
            let offset = address.checked_sub(sp).filter(|offset| offset % 8 == 0);
            let index = usize::try_from(offset.ok_or(())? / 8).map_err(drop)?;
            copied.stack.get(index).copied().ok_or(())
        };
        let mut walk = self
            .unwinder
            .iter_frames(ip, registers(copied), &mut self.cache, &mut read);
        let walk = std::iter::from_fn(|| walk.next().ok().flatten());
        walk.take(MOST)
            .map(|frame| frame.address_for_lookup())
            .collect()
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(copied: &Copied) -> UnwindRegsNative {
    let Registers { ip, sp, fp, .. } = copied.registers;
    UnwindRegsNative::new(ip, sp, fp)
}

#[cfg(target_arch = "aarch64")]
fn registers(copied: &Copied) -> UnwindRegsNative {
    let Registers { sp, fp, lr, .. } = copied.registers;
    UnwindRegsNative::new(lr, sp, fp)
}

/// Returns the program and its libraries as modules.
fn modules() -> Vec<Module<Vec<u8>>> {
    let mut modules = Vec::new();
    // SAFETY: `add` gets this vector, while the call lasts.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut modules).cast()) };
    modules
}

/// Adds a module to the vector at `data`.
unsafe extern "C" fn add(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    data: *mut c_void,
) -> libc::c_int {
    // SAFETY: `modules` passes the vector, and `dl_iterate_phdr` promises the module and its
    // headers until this function returns.
    let modules = unsafe { &mut *data.cast::<Vec<Module<Vec<u8>>>>() };
    // SAFETY: the module is mapped until this function returns.
    modules.extend(unsafe { module(&*info) });
    0
}

/// Returns a module's unwind data; `None` if it has no unwind tables in a known format.
///
/// # Safety
/// The module is mapped.
unsafe fn module(info: &libc::dl_phdr_info) -> Option<Module<Vec<u8>>> {
    if info.dlpi_phdr.is_null() {
        return None;
    }
    // SAFETY: not null; valid by the promise of `dl_iterate_phdr`.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let loaded = || headers.iter().filter(|it| it.p_type == libc::PT_LOAD);
    let hdr = headers
        .iter()
        .find(|it| it.p_type == libc::PT_GNU_EH_FRAME)?;
    let hdr_at = hdr.p_vaddr..hdr.p_vaddr + hdr.p_memsz;
    // SAFETY: a part of a loaded segment of a mapped module.
    let hdr = unsafe { copy(info.dlpi_addr, &hdr_at) };
    let &[_, RELATIVE_4_BYTES, _, _, a, b, c, d, ..] = hdr.as_slice() else {
        return None;
    };
    let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
    let start = (hdr_at.start + 4).checked_add_signed(distance)?;
    // The headers do not tell the section's length. The unwinder never reads bytes after the
    // section.
    let end = loaded()
        .map(|it| it.p_vaddr..it.p_vaddr + it.p_filesz)
        .find(|segment| segment.contains(&start))?
        .end;
    let frames_at = start..end;
    let sections = ExplicitModuleSectionInfo {
        // SAFETY: a part of a loaded segment of a mapped module.
        eh_frame: Some(unsafe { copy(info.dlpi_addr, &frames_at) }),
        eh_frame_svma: Some(frames_at),
        eh_frame_hdr: Some(hdr),
        eh_frame_hdr_svma: Some(hdr_at),
        ..ExplicitModuleSectionInfo::default()
    };
    let range =
        loaded().map(|it| it.p_vaddr).min()?..loaded().map(|it| it.p_vaddr + it.p_memsz).max()?;
    let mapped = info.dlpi_addr + range.start..info.dlpi_addr + range.end;
    Some(Module::new(String::new(), mapped, info.dlpi_addr, sections))
}

/// Copies a range of addresses.
///
/// # Safety
/// These addresses, relative to the base, are mapped, and their contents do not change.
unsafe fn copy(base: u64, at: &Range<u64>) -> Vec<u8> {
    let length = usize::try_from(at.end - at.start).unwrap_or(0);
    // SAFETY: the caller keeps the contract of this function, which is the same.
    unsafe { slice::from_raw_parts((base + at.start) as *const u8, length) }.to_vec()
}
