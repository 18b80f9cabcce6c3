package httpreach_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/run/access"
)

// TestSignatureSuite has vectors of the AWS Signature Version 4 test suite.
func TestSignatureSuite(t *testing.T) {
	t.Parallel()
	keys := [3]string{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	now := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	const unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	tests := map[string]struct {
		method, path, query, contentType, body string
		want                                   string
	}{
		"get-vanilla":                  {"GET", "/", "", "", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-vanilla-empty-query-key":  {"GET", "/", "Param1=value1", "", "", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
		"get-vanilla-query-order":      {"GET", "/", "Param2=value2&Param1=value1", "", "", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"get-vanilla-query-unreserved": {"GET", "/", unreserved + "=" + unreserved, "", "", "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
		"get-vanilla-utf8-query":       {"GET", "/", "ሴ=bar", "", "", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
		"get-unreserved":               {"GET", "/" + unreserved, "", "", "", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		"get-utf8":                     {"GET", "/ሴ", "", "", "", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
		"post-vanilla":                 {"POST", "/", "", "", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-vanilla-query":           {"POST", "/", "Param1=value1", "", "", "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
		"post-x-www-form-urlencoded":   {"POST", "/", "", "application/x-www-form-urlencoded", "Param1=value1", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			headers := http.Header{"X-Amz-Date": {"20150830T123600Z"}}
			if test.contentType != "" {
				headers.Set("Content-Type", test.contentType)
			}
			got := httpreach.Sign(keys, "us-east-1", "service", test.method, "example.amazonaws.com", test.path, test.query, headers, []byte(test.body), now)
			if !strings.HasSuffix(got, ", Signature="+test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestSignaturesOfS3 has the examples of the S3 API Reference, "Signature Calculations for the
// Authorization Header".
func TestSignaturesOfS3(t *testing.T) {
	t.Parallel()
	keys := [3]string{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	now := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		method, target, body string
		headers              http.Header
		want                 string
	}{
		"get object": {"GET", "/test.txt", "", http.Header{"Range": {"bytes=0-9"}}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		"put object": {"PUT", "/test$file.text", "Welcome to Amazon S3.", http.Header{
			"Date": {"Fri, 24 May 2013 00:00:00 GMT"}, "X-Amz-Storage-Class": {"REDUCED_REDUNDANCY"},
		}, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		"lifecycle":    {"GET", "/?lifecycle", "", http.Header{}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		"list objects": {"GET", "/?max-keys=2&prefix=J", "", http.Header{}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequest(test.method, "https://examplebucket.s3.amazonaws.com"+test.target, bytes.NewReader([]byte(test.body)))
			if err != nil {
				t.Fatal(err)
			}
			request.Header = test.headers
			if err := httpreach.SignRequest(keys, "us-east-1", "s3", request, []byte(test.body), now); err != nil {
				t.Fatal(err)
			}
			if got := request.Header.Get("Authorization"); !strings.HasSuffix(got, ", Signature="+test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestSignedRequest(t *testing.T) {
	t.Parallel()
	sent := make(chan *http.Request, 1)
	r := newRig(t, func(_ http.ResponseWriter, request *http.Request) { sent <- request })
	r.secrets["key"], r.secrets["session"] = "secret-key", "session-token"
	r.client.SetNow(func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) })
	c := r.connection()
	c.HTTP.Auth = &access.Auth{
		Kind: access.AuthAWS, AccessKey: access.Value{Text: "AKID"}, SecretKey: access.Value{Secret: "key"}, SessionToken: access.Value{Secret: "session"},
		Region: "eu-west-1", Service: "s3",
	}
	wantStatus(t, r.do(c, fields{"method": "PUT", "url": "/a:b/c d%24?x=1", "headers": map[string][]string{"Content-Type": {"text/plain"}}}, "hello"), 200)
	got := <-sent
	const want = "AWS4-HMAC-SHA256 Credential=AKID/20260102/eu-west-1/s3/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature="
	if !strings.HasPrefix(got.Header.Get("Authorization"), want) || got.Header.Get("X-Amz-Date") != "20260102T030405Z" || got.Header.Get("X-Amz-Security-Token") != "session-token" {
		t.Errorf("headers %v", got.Header)
	}
	if got.RequestURI != "/a%3Ab/c%20d%24?x=1" {
		t.Errorf("URI %s", got.RequestURI)
	}
}
