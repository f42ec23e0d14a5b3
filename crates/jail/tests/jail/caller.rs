//! What a jailed program learns of the process that started it: neither its arguments, which hold a token or a task, nor its
//! variables, its name, its directory or its memory; in every way to start one.

use std::process::{Command, Stdio};

use tgp_jail::{
    CommandSpec, NetworkAccess, Profile, Template, jailed_command, jailed_command_with_listener, start,
    start_with_listener,
};

use crate::harness::{EXECUTABLE, as_user, everybody, folder_of};
use crate::workshop::{Workshop, told};

const CALLER: &str = "TGP_JAIL_CALLER";

/// Reads what `/proc` has of every process.
const READ_ALL: &str = "for process in /proc/[0-9]*; do
        for page in cmdline environ comm auxv maps stat task/*/comm; do tr '\\0' '\\n' < $process/$page; done
        for link in cwd exe root; do readlink $process/$link; done
        ls -l $process/fd $process/map_files
    done 2> /dev/null
    printf 'first: '; cat /proc/1/comm; tr -d '\\0' < /proc/1/cmdline; echo end";

/// Has the same text as a kernel that was started with a token, and starts programs in every way.
#[test]
fn caller_child() {
    if std::env::var_os(CALLER).is_none() {
        return;
    }
    assert!(std::env::args().any(|argument| argument == "tgp1.canary-token"));
    for template in Template::ALL {
        check(&format!("{template:?}"), &ordered(template, |order| start(order).unwrap()));
    }
    for template in Template::ALL {
        let served = ordered(template, |order| {
            let order = CommandSpec { network: NetworkAccess::Loopback, ..order.clone() };
            start_with_listener(&order, 8080).unwrap().0
        });
        check(&format!("{template:?} with a listener"), &served);
    }
    let project = tempfile::tempdir().unwrap();
    let mut profile = Profile::process(project.path());
    check("a program", &output(jailed_command(&profile, shell()).unwrap()));
    profile.network = NetworkAccess::Loopback;
    let (command, _listener) = jailed_command_with_listener(&profile, shell(), 8080).unwrap();
    check("a program with a listener", &output(command));
    println!("every way was tried");
}

fn ordered(template: Template, begin: impl Fn(&CommandSpec) -> tgp_jail::JailedProcess) -> String {
    let shop = Workshop::new();
    let mut order = template.order("/bin/sh", shop.project(), shop.scratch());
    order.arguments = vec!["-c".into(), READ_ALL.into()];
    told(&begin(&order).wait().unwrap())
}

fn shell() -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", READ_ALL]).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    command
}

fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn check(way: &str, text: &str) {
    assert!(text.contains("first: tgp-jail\nend\n"), "{way}: {text}");
    let own_folder = EXECUTABLE.parent().unwrap().file_name().unwrap().to_str().unwrap();
    for secret in ["canary", "caller_child", own_folder] {
        assert!(!text.contains(secret), "{way} shows `{secret}`: {text}");
    }
}

#[test]
fn bug_the_arguments_of_the_kernel_are_shown_in_no_jail() {
    let support = tgp_jail::process_support();
    if !support.complete() {
        println!("no jail for processes here, skipped: {}", support.missing.join(" "));
        return;
    }
    for who in everybody() {
        let folder = folder_of(who);
        let mut caller = Command::new(&*EXECUTABLE);
        caller
            .args(["--exact", "caller::caller_child", "tgp1.canary-token", "--nocapture"])
            .env(CALLER, "canary-variable")
            .current_dir(folder.path());
        as_user(&mut caller, who);
        let text = output(caller);
        assert!(text.contains("every way was tried"), "{who:?}: {text}");
    }
}
