import core.thread, core.time, core.sync.mutex, std.conv, std.stdio;
__gshared Mutex m; __gshared string last;
void control(){ auto next = MonoTime.currTime; while(true){ next += msecs(5); auto s = "";
  synchronized(m){ foreach(i;0..50) s ~= to!string(i); last = s; }
  auto d = next - MonoTime.currTime; if(d > Duration.zero) Thread.sleep(d);} }
void logger(){ while(true){ synchronized(m){ auto t=MonoTime.currTime; while(MonoTime.currTime-t < msecs(3)){} } Thread.sleep(msecs(9)); } }
void main(){ m = new Mutex; auto c = new Thread(&control); c.name="control"; c.start(); new Thread(&logger).start(); c.join(); }
