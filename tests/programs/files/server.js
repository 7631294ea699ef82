// Answers with what it reads of a file.
const fs = require("fs");
require("http").createServer((_, answer) => answer.end(fs.readFileSync("/etc/passwd")))
  .listen(18090, "127.0.0.1");
