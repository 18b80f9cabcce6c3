flow "a" {
}
