plugin "pricing" {
  source = "./pricing.wasm"
}

plugin "review" {
  source = "./review.wasm"
}

plugin "notify" {
  source = "./notify.wasm"
}
