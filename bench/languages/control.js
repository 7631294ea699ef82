// A loop of 5 ms that allocates and writes.
const fs = require("fs");

function step(number) {
  const made = { numbers: new Array(300).fill(number), text: "x".repeat(500) };
  fs.writeFileSync("/dev/null", JSON.stringify(made));
}

let number = 0;
setInterval(() => step(number++), 5);
