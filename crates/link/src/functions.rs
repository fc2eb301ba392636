//! Functions called by their names.
//!
//! **Problem.** The caller of a function knows its name, and the types of its input and output. The
//! caller does not know whether a process, a task or a pool carries the function out.
//!
//! **Protocol.** A scheduler has a single table. A function is code that makes a [`Call`] of its
//! input. Its two types are part of the type of the code, so one look tells whether they are right.
//! The code runs where the call is asked, contained, without the lock.
//!
//! A function may keep addresses, and with them the scheduler. So the table is emptied when the
//! workers have returned, and takes no function after the halt.

use ganger_proc_api::{BoxError, Completer, Context, Payload, Pid, Reply};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Address, Call, ContextExt, ExitAction, Handle};
use ganger_sync::panic_text;
use ganger_sync::sync::{Mutex, lock};
use std::any::{Any, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// A function of these types, as the table stores it.
type Function<I, O> = Arc<dyn Fn(I) -> Call<O> + Send + Sync>;

/// The functions of a scheduler, by name. Cloning it is cheap.
///
/// A function has a type of input and a type of output. Its call is a [`Call`]. Steps, tasks and
/// threads ask it as any other, with a deadline or without, and take it back.
///
/// ```
/// use ganger_link::Services;
/// use ganger_proc_api::{BoxError, Reply, actor_fn};
/// use ganger_sched::Scheduler;
///
/// let scheduler = Scheduler::start_default()?;
/// let doubler = scheduler.spawn(actor_fn(|_, (number, reply): (u64, Reply<u64>), _| {
///     reply.complete(2 * number);
///     Ok(())
/// }))?;
/// let functions = Services::of(&scheduler);
/// functions.register_process("double", &doubler, |number: u64, reply| (number, reply))?;
/// assert_eq!(functions.call::<u64, u64>("double", 21)?.wait()?, 42);
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Clone)]
pub struct Services {
    table: Arc<Table>,
}

/// The scheduler's reference to the table.
struct OfScheduler(Arc<Table>);

#[derive(Default)]
struct Table(Mutex<State>);

#[derive(Default)]
struct State {
    functions: BTreeMap<Box<str>, Arc<Entry>>,
    /// The number of the last function.
    last: u64,
    /// The scheduler has stopped.
    is_over: bool,
}

struct Entry {
    number: u64,
    types: FunctionTypes,
    /// A [`Function`].
    function: Box<dyn Any + Send + Sync>,
    carry_out: CarryOut,
}

/// Calls a [`Function`] with an input whose type is not known.
type CarryOut = fn(&(dyn Any + Send + Sync), Payload, Completer) -> Result<(), BoxError>;

/// The types of a function's input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionTypes {
    /// The name of the type of the input.
    pub input: &'static str,
    /// The name of the type of the output.
    pub output: &'static str,
}

/// A function is not called. Its input is inside: nothing is lost.
#[derive(thiserror::Error)]
#[error("can't call {name:?}: {kind}")]
pub struct FunctionError<I> {
    /// The requested name.
    pub name: Box<str>,
    /// The input.
    pub input: I,
    /// Why it is not called.
    pub kind: FunctionErrorKind,
}

/// Why a function is not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionErrorKind {
    /// No function has this name.
    #[error("no function with that name is registered")]
    NoSuchFunction,
    /// The function has other types.
    #[error("type mismatch: the function {has}, but the call {called}")]
    WrongTypes {
        /// The types of the function.
        has: FunctionTypes,
        /// The types of the call.
        called: FunctionTypes,
    },
}

/// A function was not registered. The function is inside: nothing is lost.
#[derive(thiserror::Error)]
#[error("can't register the function {name:?}: {kind}")]
pub struct RegisterFunctionError<F> {
    /// The requested name.
    pub name: Box<str>,
    /// The function.
    pub function: F,
    /// Why it was refused.
    pub kind: RegisterFunctionErrorKind,
}

/// Why a function was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterFunctionErrorKind {
    /// Another function has the name.
    #[error("the name is taken by a function that {0}")]
    Taken(FunctionTypes),
    /// The process of the function has ended.
    #[error("{0} has ended")]
    Ended(Pid),
    /// The scheduler has stopped.
    #[error("the scheduler has stopped")]
    Stopped,
}

/// Takes the function of a process away at its end.
struct Leave {
    table: Weak<Table>,
    name: Box<str>,
    number: u64,
    /// The process has registered it itself.
    is_own: bool,
}

impl fmt::Display for FunctionTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "takes `{}` and gives `{}`", self.input, self.output)
    }
}

impl FunctionTypes {
    fn of<I, O>() -> Self {
        let (input, output) = (type_name::<I>(), type_name::<O>());
        Self { input, output }
    }
}

impl Services {
    /// Gives the functions of a scheduler.
    #[must_use]
    pub fn of(scheduler: &Handle) -> Self {
        let table = scheduler.extension(|scheduler| {
            let table = Arc::<Table>::default();
            let weak = Arc::downgrade(&table);
            scheduler.at_halt(move || {
                if let Some(table) = weak.upgrade() {
                    table.end();
                }
            });
            OfScheduler(table)
        });
        let table = Arc::clone(&table.0);
        Self { table }
    }

    /// Gives the functions of the process's scheduler. `None` for a context without a scheduler.
    #[must_use]
    pub fn of_process(ctx: &Context) -> Option<Self> {
        ctx.scheduler().map(|scheduler| Self::of(&scheduler))
    }

    /// Registers a function that runs where it is called. The function should be short: longer work
    /// is for a process, a task or a pool. An error, or a panic, is the answer.
    ///
    /// ```
    /// # use ganger_link::Services;
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// # let scheduler = Scheduler::start_default()?;
    /// let functions = Services::of(&scheduler);
    /// functions.register("length", |text: String| Ok(text.len()))?;
    /// let answer = functions.call::<String, usize>("length", "four".to_owned())?;
    /// assert_eq!(answer.wait()?, 4);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`RegisterFunctionError`], with the function inside, when another function has the name, or
    /// the scheduler has stopped.
    pub fn register<I, O, F>(
        &self,
        name: impl Into<Box<str>>,
        function: F,
    ) -> Result<(), RegisterFunctionError<F>>
    where
        I: Send + 'static,
        O: Send + 'static,
        F: Fn(I) -> Result<O, BoxError> + Send + Sync + 'static,
    {
        self.put(name.into(), function, |function| {
            let function = Arc::new(function);
            move |input| {
                let function = Arc::clone(&function);
                Call::by(move |reply| {
                    reply.complete(function(input)?);
                    Ok(())
                })
            }
        })?;
        Ok(())
    }

    /// Registers a function that makes a call of its input: code that starts a task for each input,
    /// or the `call` of a pool or of an address.
    ///
    /// The function runs where it is called, and should be short.
    ///
    /// # Errors
    /// As for [`register`](Self::register).
    pub fn register_call<I, O, F>(
        &self,
        name: impl Into<Box<str>>,
        function: F,
    ) -> Result<(), RegisterFunctionError<F>>
    where
        I: Send + 'static,
        O: Send + 'static,
        F: Fn(I) -> Call<O> + Send + Sync + 'static,
    {
        self.put(name.into(), function, |function| function)?;
        Ok(())
    }

    /// Registers a function of a process: `message` makes its message of the input and the
    /// [`Reply`]. The end of the process takes the function away, before other processes hear of
    /// the end. So does its restart in place, if the process has registered the function itself.
    ///
    /// # Errors
    /// As for [`register`](Self::register), and when the process has ended.
    pub fn register_process<M, I, O, F>(
        &self,
        name: impl Into<Box<str>>,
        process: impl AsRef<Address<M>>,
        message: F,
    ) -> Result<(), RegisterFunctionError<F>>
    where
        M: Send + 'static,
        I: Send + 'static,
        O: Send + 'static,
        F: Fn(I, Reply<O>) -> M + Clone + Send + Sync + 'static,
    {
        let process = process.as_ref();
        let name = name.into();
        let number = self.put(name.clone(), message.clone(), |message| {
            let process = process.clone();
            move |input| {
                let message = message.clone();
                process.call(move |reply| message(input, reply))
            }
        })?;
        let process = process.untyped();
        let leave = Leave {
            table: Arc::downgrade(&self.table),
            name: name.clone(),
            number,
            is_own: process.is_own(),
        };
        if process.add_exit_action(Box::new(leave)).is_ok() {
            return Ok(());
        }
        self.table.remove(&name, Some(number));
        Err(RegisterFunctionError {
            name,
            function: message,
            kind: RegisterFunctionErrorKind::Ended(process.pid()),
        })
    }

    /// Puts the result of `make` into the table, and returns the function's number.
    fn put<I, O, F, G>(
        &self,
        name: Box<str>,
        function: F,
        make: impl FnOnce(F) -> G,
    ) -> Result<u64, RegisterFunctionError<F>>
    where
        I: Send + 'static,
        O: Send + 'static,
        G: Fn(I) -> Call<O> + Send + Sync + 'static,
    {
        let mut state = lock(&self.table.0);
        let kind = match state.functions.get(&name) {
            Some(other) => RegisterFunctionErrorKind::Taken(other.types),
            None if state.is_over => RegisterFunctionErrorKind::Stopped,
            None => {
                state.last += 1;
                let number = state.last;
                let function: Function<I, O> = Arc::new(make(function));
                let entry = Entry {
                    number,
                    types: FunctionTypes::of::<I, O>(),
                    function: Box::new(function),
                    carry_out: carry_out::<I, O>,
                };
                state.functions.insert(name, Arc::new(entry));
                return Ok(number);
            }
        };
        drop(state);
        Err(RegisterFunctionError {
            name,
            function,
            kind,
        })
    }

    /// Makes a call of the function that has this name now. Ask it as any other [`Call`]: by
    /// `out.ask(call, tag)`, `wait`, `wait_timeout` or `.await`. When the caller takes the call
    /// back, or has waited for as long as it wants, [`Reply::is_cancelled`] shows it.
    ///
    /// # Errors
    /// [`FunctionError`], with the input inside, when no function has the name, or it has other
    /// types.
    pub fn call<I, O>(&self, name: &str, input: I) -> Result<Call<O>, FunctionError<I>>
    where
        I: Send + 'static,
        O: Send + 'static,
    {
        let found = lock(&self.table.0).functions.get(name).map(Arc::clone);
        let kind = match found {
            None => FunctionErrorKind::NoSuchFunction,
            Some(entry) => match entry.function.downcast_ref::<Function<I, O>>() {
                Some(function) => {
                    let function = Arc::clone(function);
                    let carry_out = move |reply| contained(|| function(input).pass_on(reply));
                    return Ok(Call::by(carry_out));
                }
                None => FunctionErrorKind::WrongTypes {
                    has: entry.types,
                    called: FunctionTypes::of::<I, O>(),
                },
            },
        };
        Err(FunctionError {
            name: name.into(),
            input,
            kind,
        })
    }

    /// Calls the function that has this name now, for a caller whose types are not known here: for
    /// crates that pass the calls of other nodes on. The completer gets the answer.
    ///
    /// # Errors
    /// No function has the name, or its input is of another type, or the function has refused the
    /// call. The completer has been dropped.
    pub fn carry_out(
        &self,
        name: &str,
        input: Payload,
        completer: Completer,
    ) -> Result<(), BoxError> {
        let found = lock(&self.table.0).functions.get(name).map(Arc::clone);
        let entry = found.ok_or_else(|| {
            let kind = FunctionErrorKind::NoSuchFunction;
            format!("can't call {name:?}: {kind}")
        })?;
        (entry.carry_out)(&*entry.function, input, completer)
    }

    /// Takes a function away. Calls of it made before are carried out. Returns whether the function
    /// existed.
    pub fn remove(&self, name: &str) -> bool {
        self.table.remove(name, None)
    }

    /// Returns the types of the function with this name.
    #[must_use]
    pub fn types(&self, name: &str) -> Option<FunctionTypes> {
        let state = lock(&self.table.0);
        state.functions.get(name).map(|entry| entry.types)
    }

    /// Returns all functions, in the order of their names.
    #[must_use]
    pub fn list(&self) -> Vec<(Box<str>, FunctionTypes)> {
        let state = lock(&self.table.0);
        let all = state.functions.iter();
        all.map(|(name, entry)| (name.clone(), entry.types))
            .collect()
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

impl<I> fmt::Debug for FunctionError<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionError")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for RegisterFunctionError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisterFunctionError")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl ExitAction for Leave {
    fn release(&mut self, _: Pid) {
        if let Some(table) = self.table.upgrade() {
            table.remove(&self.name, Some(self.number));
        }
    }

    fn ends_with_incarnation(&self) -> bool {
        self.is_own
    }

    /// Returns whether the function has been removed.
    fn is_over(&self) -> bool {
        let table = self.table.upgrade();
        table.is_none_or(|table| !table.has(&self.name, self.number))
    }
}

fn carry_out<I, O>(
    function: &(dyn Any + Send + Sync),
    input: Payload,
    completer: Completer,
) -> Result<(), BoxError>
where
    I: Send + 'static,
    O: Send + 'static,
{
    let input = input.take::<I>()?;
    let function = function.downcast_ref::<Function<I, O>>();
    let function = Arc::clone(function.ok_or("a function has the types that it was put with")?);
    contained(|| function(input).pass_on(Reply::new(completer)))
}

/// Calls a user's function, and turns its panic into an error.
fn contained(f: impl FnOnce() -> Result<(), BoxError>) -> Result<(), BoxError> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic_text(&*panic).unwrap_or("non-string panic payload");
        let error = format!("the function panicked: {text}");
        // Its destructor might panic as well.
        mem::forget(panic);
        Err(error.into())
    })
}

impl Table {
    /// Takes the function with this name away, if it has this number.
    fn remove(&self, name: &str, number: Option<u64>) -> bool {
        let mut state = lock(&self.0);
        let found = state.functions.get(name);
        let is_meant = found.is_some_and(|it| number.is_none_or(|number| it.number == number));
        let removed = is_meant.then(|| state.functions.remove(name));
        drop(state);
        // The function's captured values are dropped here, without the lock.
        removed.is_some()
    }

    fn has(&self, name: &str, number: u64) -> bool {
        let state = lock(&self.0);
        let found = state.functions.get(name);
        found.is_some_and(|it| it.number == number)
    }

    fn end(&self) {
        let mut state = lock(&self.0);
        state.is_over = true;
        let functions = mem::take(&mut state.functions);
        drop(state);
        drop(functions);
    }
}
