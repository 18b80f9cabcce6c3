// Package reach performs the operations of calls: it decides by the policy of each call
// whether it may use a connection or a secret at all, and hands operations to the driver of
// their kind. Drivers are in packages below. It starts no goroutine.
package reach
