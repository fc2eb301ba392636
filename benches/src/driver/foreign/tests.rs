use super::*;
use crate::whole::catalog::Id;

#[test]
fn what_is_not_on_the_path_is_not_installed() {
    let nowhere = tempfile::tempdir().unwrap();
    let path = nowhere.path().as_os_str();
    let languages = [(Peer::Go, "go"), (Peer::Erlang, "erl")];
    let apart = [Peer::KameoRemote, Peer::RactorCluster].map(|peer| (peer, "cargo"));
    for (peer, program) in languages.into_iter().chain(apart) {
        for path in [path, OsStr::new("")] {
            let error = find_on(path, peer, nowhere.path()).unwrap_err();
            assert_eq!(error, Unavailable::NotInstalled(program));
            assert!(
                error
                    .to_string()
                    .contains(&format!("`{program}` is not on the PATH"))
            );
        }
    }
    assert_eq!(fs::read_dir(nowhere.path()).unwrap().count(), 0);
}

#[test]
fn peers_in_rust_need_no_program() {
    let error = find(Peer::Tokio).unwrap_err();
    assert_eq!(error, Unavailable::NotForeign(Peer::Tokio));
}

/// The sources have the sizes of the catalogue: a run with other sizes would be another workload.
#[test]
fn sources_have_the_workloads_of_the_catalog_with_their_sizes() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
    let go = fs::read_to_string(sources.join("go/measure.go")).unwrap();
    let erlang = fs::read_to_string(sources.join("erlang/measure.erl")).unwrap();
    for spec in Id::ALL
        .iter()
        .filter(|id| !id.is_queue())
        .map(|id| id.spec())
    {
        let entry = format!("{{\"{}\", {}, {}, ", spec.id, spec.full, spec.quick);
        for (peer, text) in [(Peer::Go, &go), (Peer::Erlang, &erlang)] {
            let entries = text.replace('_', "").matches(&entry).count();
            let runs = spec.peers.contains(&peer);
            assert!(entries == 1 || entries == 0 && !runs, "{peer:?} {entry}");
        }
    }
}

#[cfg(unix)]
mod with_fakes {
    use super::*;
    use crate::whole::job::Size;
    use tempfile::TempDir;

    fn job(id: Id, peer: Peer) -> Job {
        Job::new(id, peer, 3, Size::Quick)
    }

    /// Creates a folder with shell scripts of these names, and a folder for builds.
    ///
    /// Another process writes the scripts. A script open here for writing could not be run while a
    /// process has a copy of its descriptor, and another test's new process has a copy for a
    /// moment.
    fn fakes(scripts: &[(&str, &str)]) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for (name, script) in scripts {
            let file = folder.path().join(name);
            let script = format!("#!/bin/sh\n{script}\n");
            let write = "printf '%s' \"$1\" >\"$0\" && chmod 755 \"$0\"";
            let mut shell = Command::new("sh");
            shell.args(["-c", write]).arg(file).arg(script);
            output(&mut shell).unwrap();
        }
        let target = folder.path().join("target/foreign");
        (folder, target)
    }

    fn words(command: &Command) -> Vec<String> {
        line(command).split(' ').map(str::to_owned).collect()
    }

    fn leaves_out(command: &Command, setting: &str) -> bool {
        command
            .get_envs()
            .any(|it| it == (OsStr::new(setting), None))
    }

    #[test]
    fn what_go_builds_is_run_with_the_job() {
        let go = "case $1 in\n\
                  env) echo go1.99.1 ;;\n\
                  build) test -f main.go && test $GOPROXY = off && test $2 = -buildvcs=false && \
                  cp \"$0\" \"$4\" ;;\n\
                  *) echo \"$@\" ;;\n\
                  esac";
        let (folder, target) = fakes(&[("go", go)]);
        let program = find_on(folder.path().as_os_str(), Peer::Go, &target).unwrap();
        assert_eq!(program.version(), "1.99.1");
        let job = job(Id::W4, Peer::Go);
        let mut command = program.command(&job);
        assert!(Path::new(command.get_program()).starts_with(&target));
        assert!(leaves_out(&command, "GOGC"));
        assert_eq!(output(&mut command).unwrap(), job.args().join(" "));
    }

    #[test]
    fn a_build_that_fails_says_what_is_wrong() {
        let go = "test $1 = env || { echo './main.go:7: syntax error' >&2; exit 2; }";
        let erlc = "echo 'gate.erl:1: no module'; exit 1";
        let cargo = "echo 'error: no network' >&2; exit 101";
        let scripts = [
            ("go", go),
            ("erl", "exit 0"),
            ("erlc", erlc),
            ("cargo", cargo),
        ];
        let (folder, target) = fakes(&scripts);
        let find = |peer| find_on(folder.path().as_os_str(), peer, &target);
        let error = find(Peer::Go).unwrap_err().to_string();
        assert!(
            error.contains("go build -buildvcs=false -o ") && error.ends_with("7: syntax error"),
            "{error}"
        );
        let error = find(Peer::Erlang).unwrap_err().to_string();
        assert!(
            error.contains("erlc -Werror ") && error.ends_with("no module"),
            "{error}"
        );
        let error = find(Peer::KameoRemote).unwrap_err().to_string();
        assert!(
            error.contains("cargo build ") && error.ends_with("no network"),
            "{error}"
        );
    }

    #[test]
    fn a_workspace_apart_is_built_by_cargo_for_one_peer() {
        // build --release --locked -p NAME --manifest-path FILE --target-dir FOLDER
        let cargo = "case $1 in\n\
                     build) test $2 = --release && test $3 = --locked && test -f \"$7\" && \
                     mkdir \"$9/release\" && cp \"$0\" \"$9/release/$5\" ;;\n\
                     *) echo \"$@\" ;;\n\
                     esac";
        for (peer, name) in [
            (Peer::KameoRemote, "ganger-remote-kameo"),
            (Peer::RactorCluster, "ganger-remote-ractor"),
        ] {
            let (folder, target) = fakes(&[("cargo", cargo)]);
            let program = find_on(folder.path().as_os_str(), peer, &target).unwrap();
            assert!(program.version().starts_with("0."), "{program:?}");
            let job = job(Id::X1, peer);
            let mut command = program.command(&job);
            assert!(Path::new(command.get_program()).ends_with(name));
            assert_eq!(output(&mut command).unwrap(), job.args().join(" "));
        }
    }

    #[test]
    fn erlang_is_told_how_many_schedulers_and_processes() {
        let erl = "echo 27";
        let erlc = "for word; do last=$word; done; test -f \"$last\" && touch \"$3/compiled\"";
        let (folder, target) = fakes(&[("erl", erl), ("erlc", erlc)]);
        let program = find_on(folder.path().as_os_str(), Peer::Erlang, &target).unwrap();
        assert_eq!(program.version(), "OTP 27");
        assert!(target.join("erlang/compiled").exists());

        let mut job = job(Id::W8, Peer::Erlang);
        assert!(leaves_out(&program.command(&job), "ERL_FLAGS"));
        let all = words(&program.command(&job));
        let extra = all.iter().position(|word| word == "-extra").unwrap();
        assert_eq!(all[extra + 1..], job.args());
        let after = |all: &[String], option: &str| {
            let at = all.iter().position(|word| word == option).unwrap();
            all[at + 1].clone()
        };
        assert_eq!(after(&all, "+S"), "3:3");
        assert_eq!(after(&all, "+P"), "2000000");
        assert_eq!(Path::new(&after(&all, "-pa")), target.join("erlang"));
        job.processes = Some(10_000_000);
        assert_eq!(after(&words(&program.command(&job)), "+P"), "20000000");
        job.processes = Some(u64::MAX);
        assert_eq!(after(&words(&program.command(&job)), "+P"), "134217727");
    }

    #[test]
    fn what_cannot_be_run_is_no_program() {
        let (folder, target) = fakes(&[]);
        fs::write(folder.path().join("go"), "words").unwrap();
        let error = find_on(folder.path().as_os_str(), Peer::Go, &target).unwrap_err();
        assert_eq!(error, Unavailable::NotInstalled("go"));
    }

    #[test]
    fn what_is_elsewhere_from_another_folder_is_no_program() {
        let (folder, target) = fakes(&[("go", "exit 0")]);
        let here = env::current_dir().unwrap();
        let root: PathBuf = here.ancestors().skip(1).map(|_| "..").collect();
        let relative = root.join(folder.path().strip_prefix("/").unwrap());
        assert!(relative.join("go").is_file());
        let error = find_on(relative.as_os_str(), Peer::Go, &target).unwrap_err();
        assert_eq!(error, Unavailable::NotInstalled("go"));
    }
}
