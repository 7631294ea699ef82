using System; using System.Threading; using System.Collections.Generic;
class Ticks { static object l=new object(); static void Main(){ new Thread(()=>{ while(true){ lock(l){ Thread.Sleep(3);} Thread.Sleep(10);} }).Start();
 while(true){ lock(l){ var x=new List<int>(); for(int i=0;i<500;i++) x.Add(i); } Thread.Sleep(5);} } }
