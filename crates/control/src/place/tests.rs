//! Folders that meet the rules, and folders that do not.

use std::os::unix::fs::symlink;

use super::*;

/// Makes a new folder for a test, closed to others.
fn ours(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("sinew-place-{}-{name}", std::process::id()));
    // It may be left over from a run that was killed.
    let _ = fs::remove_dir_all(&folder);
    DirBuilder::new().mode(0o700).create(&folder).expect("a folder");
    folder
}

fn uid() -> u32 {
    geteuid().as_raw()
}

fn refusal(folder: &Path, uid: u32) -> String {
    make_first(&[folder.into()], uid).expect_err("not for its owner alone").to_string()
}

#[test]
fn a_folder_is_made_for_its_owner_alone() {
    let parent = ours("made");
    let folder = parent.join("sinew");
    assert_eq!(make_first(std::slice::from_ref(&folder), uid()).expect("made"), folder);
    assert_eq!(folder.metadata().expect("a folder").mode() & 0o777, 0o700);
    assert_eq!(make_first(std::slice::from_ref(&folder), uid()).expect("it is there"), folder);
    fs::remove_dir_all(parent).expect("removed");
}

#[test]
fn a_folder_that_cannot_be_made_leads_to_the_next() {
    let parent = ours("next");
    let good = parent.join("sinew");
    let chosen = make_first(&[parent.join("no/such"), good.clone()], uid());
    assert_eq!(chosen.expect("the second"), good);
    let error = refusal(&parent.join("no/such"), uid());
    assert!(error.contains("no/such: No such file") && error.contains("set XDG_"), "{error}");
    fs::remove_dir_all(parent).expect("removed");
}

#[test]
fn a_folder_that_others_can_enter_own_or_replace_is_refused() {
    let parent = ours("refused");
    let (open, link, file) = (parent.join("open"), parent.join("link"), parent.join("file"));
    DirBuilder::new().create(&open).expect("a folder");
    fs::set_permissions(&open, Permissions::from_mode(0o755)).expect("chmod");
    symlink(&parent, &link).expect("a link");
    fs::write(&file, "").expect("a file");
    let error = refusal(&open, uid());
    assert!(error.contains("has mode 0755, expected 0700; run 'chmod 700"), "{error}");
    let error = refusal(&link, uid());
    assert!(error.contains("is a symbolic link, expected a folder; remove it"), "{error}");
    let error = refusal(&file, uid());
    assert!(error.contains("is not a folder; remove it"), "{error}");
    let error = refusal(&parent, uid() + 1);
    assert!(error.contains(&format!("belongs to user {}, expected", uid())), "{error}");
    fs::remove_dir_all(parent).expect("removed");
}

#[test]
fn a_user_has_folders_of_his_own() {
    let none = Environment { uid: 1000, runtime_directory: None, xdg_runtime_dir: None };
    let folders = ["/run/sinew-1000", "/tmp/sinew-1000"].map(PathBuf::from);
    assert_eq!(none.candidates(), folders);
    let root = Environment { uid: 0, ..none };
    assert_eq!(root.candidates()[0], Path::new("/run/sinew-0"));
}

#[test]
fn what_the_environment_offers_is_taken_if_it_is_ours() {
    let parent = ours("environment");
    let own = Environment {
        uid: uid(),
        runtime_directory: Some("/run/sinew/arm:/run/more".into()),
        xdg_runtime_dir: Some(parent.clone().into()),
    };
    assert_eq!(own.candidates()[..2], ["/run/sinew/arm".into(), parent.join("sinew")]);
    let other = Environment { uid: uid() + 1, runtime_directory: None, ..own };
    assert!(!other.candidates().contains(&parent.join("sinew")));
    let relative =
        Environment { runtime_directory: Some("arm".into()), xdg_runtime_dir: None, ..other };
    assert_eq!(relative.candidates().len(), 2);
    fs::remove_dir_all(parent).expect("removed");
}

#[test]
fn the_name_of_a_socket_is_its_process() {
    assert_eq!(process_of(Path::new("/run/sinew/4711.sock"), ENDING), Some(4711));
    assert_eq!(process_of(Path::new("4711-2.sock"), ENDING), Some(4711));
    for other in ["arm.sock", "4711", "4711.txt", ".sock", "0.sock", "-1.sock"] {
        assert_eq!(process_of(Path::new(other), ENDING), None, "{other}");
    }
}
