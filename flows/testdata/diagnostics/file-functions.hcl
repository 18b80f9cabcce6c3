flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = [file("../secret"), file("missing.txt"), file("file-functions.hcl"), filebase64("/etc/passwd")]
  }
  task "u" {
    plugin = "./greet.wasm"
    input  = "${run.id} ${file("missing.txt")}"
  }
}
