{$mode objfpc}{$H+}
uses cthreads, classes, sysutils, syncobjs;
type TC = class(TThread) procedure Execute; override; end;
     TL = class(TThread) procedure Execute; override; end;
var cs: TCriticalSection; s: string;
procedure TC.Execute;
var i: integer; l: TStringList;
begin
  while true do begin
    cs.Enter;
    l := TStringList.Create;
    for i := 1 to 20 do l.Add(IntToStr(i));
    s := l.Text; l.Free;
    cs.Leave;
    Sleep(5);
  end;
end;
procedure TL.Execute;
var t: QWord;
begin
  while true do begin cs.Enter; t := GetTickCount64; while GetTickCount64 < t + 3 do; cs.Leave; Sleep(7); end;
end;
begin
  cs := TCriticalSection.Create;
  TC.Create(false); TL.Create(false);
  while true do Sleep(1000);
end.
