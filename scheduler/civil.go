package scheduler

// Calendar arithmetic after Howard Hinnant, "chrono-Compatible Low-Level Date
// Algorithms", sections days_from_civil and civil_from_days. Years start in
// March, so that the leap day is the last of its year, and are grouped in eras
// of 400 years. Days count from 1970-01-01.
const (
	eraDays   = 146097
	epochDays = 719468 // from 0000-03-01 to 1970-01-01
)

// civil is the year, month and day of the month of a day.
func civil(day int64) (year int64, month, dayOfMonth int) {
	day += epochDays
	era := floorDiv(day, eraDays)
	dayOfEra := day - era*eraDays
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153 // from March, 0
	year, month = era*400+yearOfEra, int(m)+3
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, int(dayOfYear-(153*m+2)/5) + 1
}

// firstOfMonth is the first day of a month.
func firstOfMonth(year int64, month int) int64 {
	m := int64(month) - 3
	if m < 0 {
		year, m = year-1, m+12
	}
	era := floorDiv(year, 400)
	yearOfEra := year - era*400
	dayOfYear := (153*m + 2) / 5
	return era*eraDays + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - epochDays
}

func monthLength(year int64, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// weekday is 0 for Sunday. 1970-01-01 was a Thursday.
func weekday(day int64) int {
	return int(day + 4 - 7*floorDiv(day+4, 7))
}
