with Ada.Real_Time; use Ada.Real_Time;
with Ada.Text_IO; with System;
procedure Ticks is
   protected Store with Priority => System.Priority'Last is
      procedure Put (V : Integer);
      function Get return Integer;
   private
      Val : Integer := 0;
   end Store;
   protected body Store is
      procedure Put (V : Integer) is begin Val := V; end Put;
      function Get return Integer is (Val);
   end Store;
   task Control with Priority => 80;
   task Logger with Priority => 10;
   task body Control is
      Next : Time := Clock;
      type Block is array (Positive range <>) of Integer;
      type Ref is access Block;
      P : Ref;
   begin
      loop
         Next := Next + Milliseconds (5);
         delay until Next;
         P := new Block (1 .. 100);
         P (1) := 1;
         Store.Put (P (1));
      end loop;
   end Control;
   task body Logger is
   begin
      loop
         delay 0.02;
         if Store.Get > 5 then Ada.Text_IO.Put_Line ("x"); end if;
      end loop;
   end Logger;
begin
   null;
end Ticks;
