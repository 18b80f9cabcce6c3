// Package dbserver starts database servers for tests, each in a temporary directory of its
// own, with certificates: PostgreSQL and MariaDB as the system has them installed. It runs on
// Linux.
package dbserver
