// A real-time thread `cycle` that shares a Mutex, a RwLock or a channel with `holder`.
use std::sync::{mpsc, Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

extern "C" {
    fn pthread_self() -> usize;
    fn pthread_setschedparam(thread: usize, policy: i32, param: *const i32) -> i32;
}

struct Shared {
    mutex: Mutex<u64>,
    rwlock: RwLock<u64>,
}

#[inline(never)]
fn step(kind: &str, shared: &Shared, work: &mpsc::Receiver<u64>) {
    match kind {
        "mutex" => *shared.mutex.lock().unwrap() += 1,
        "reader" => assert!(*shared.rwlock.read().unwrap() < u64::MAX),
        _ => assert!(work.recv().unwrap() < u64::MAX),
    }
}

fn spin() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(3) {}
}

fn main() {
    let kind = std::env::args().nth(1).unwrap_or("mutex".into());
    let shared = Arc::new(Shared { mutex: Mutex::new(0), rwlock: RwLock::new(0) });
    let (send, work) = mpsc::channel();
    let (of_holder, its_kind) = (shared.clone(), kind.clone());
    let holder = move || loop {
        match its_kind.as_str() {
            "mutex" => {
                let _held = of_holder.mutex.lock().unwrap();
                spin();
            }
            "reader" => {
                let _held = of_holder.rwlock.write().unwrap();
                spin();
            }
            _ => send.send(1).unwrap(),
        }
        std::thread::sleep(Duration::from_millis(4));
    };
    std::thread::Builder::new().name("holder".into()).spawn(holder).unwrap();
    let cycle = move || {
        let param = [61i32; 4];
        assert_eq!(unsafe { pthread_setschedparam(pthread_self(), 1, param.as_ptr()) }, 0);
        loop {
            step(&kind, &shared, &work);
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    std::thread::Builder::new().name("cycle".into()).spawn(cycle).unwrap().join().unwrap();
}
